//! Three functions for catalogues of events, such as earthquakes: each is a loop that carries
//! something from one event to the next. `demo.py` calls them from JAX.

use jax_callable::prelude::*;

/// Sum of the weights of past events, each decayed by exp(-age / tau), at the times `at`.
///
/// `time` and `at` ascend.
#[jax_callable]
fn decaying_sum(
    tau: f64,
    #[dims(n)] time: cpu::Array<f64, 1>,
    #[dims(n)] weight: cpu::Array<f64, 1>,
    #[dims(m)] at: cpu::Array<f64, 1>,
    #[dims(m)] mut sum: cpu::ArrayMut<f64, 1>,
) {
    let mut events = time.iter().zip(weight.iter()).peekable();
    let (mut last, mut level) = (f64::NEG_INFINITY, 0.0);
    for (sum, &at) in sum.iter_mut().zip(at.iter()) {
        while let Some((&time, &weight)) = events.next_if(|event| *event.0 <= at) {
            level = level * ((last - time) / tau).exp() + weight;
            last = time;
        }
        *sum = level * ((last - at) / tau).exp();
    }
}

/// total[index[i]] += weight[i], in place.
#[jax_callable(in_out = "total")]
fn add_at(
    #[dims(n)] index: cpu::Array<i32, 1>,
    #[dims(n)] weight: cpu::Array<f64, 1>,
    mut total: cpu::ArrayMut<f64, 1>,
) -> Result<()> {
    let len = total.len();
    for (&i, weight) in index.iter().zip(weight.iter()) {
        let slot = usize::try_from(i).ok().and_then(|i| total.get_mut(i));
        let Some(slot) = slot else {
            return Err(Error::out_of_range(format!("index {i} is not in 0..{len}")));
        };
        *slot += weight;
    }
    Ok(())
}

/// Groups events into sequences: two events belong together if they are at most `window` days and
/// `radius` km apart, or if a chain of such events joins them.
///
/// `day` ascends; `position` is in km. `first[i]` is the index of the earliest event in the
/// sequence of event i, `count` the number of sequences.
#[jax_callable]
fn link(
    window: f64,
    radius: cpu::Array<f64, 0>,
    #[dims(n)] day: cpu::Array<f64, 1>,
    #[dims(n)] position: cpu::Array<[f64; 3], 1>,
    #[dims(n)] mut first: cpu::ArrayMut<i32, 1>,
    #[dims()] mut count: cpu::ArrayMut<i32, 0>,
) -> Result<()> {
    if !day.is_sorted() {
        return Err(Error::invalid_argument("`day` must ascend"));
    }
    // `first` is the forest of a union-find: each event points at an earlier one, roots at
    // themselves.
    for (i, first) in first.iter_mut().enumerate() {
        *first = i32::try_from(i)?;
    }
    let mut start = 0;
    for i in 0..day.len() {
        while start < i && day[i] - day[start] > window {
            start += 1;
        }
        for j in start..i {
            if distance_squared(position[i], position[j]) <= radius[[]] * radius[[]] {
                let (a, b) = (root(&mut first, i), root(&mut first, j));
                first[a.max(b)] = first[a.min(b)];
            }
        }
    }
    // Parents come before their children, so each now points at a root.
    for i in 0..first.len() {
        first[i] = first[first[i] as usize];
    }
    let roots = first.iter().zip(0..).filter(|(first, i)| *first == i);
    count[[]] = i32::try_from(roots.count())?;
    Ok(())
}

/// The root of event `i`; the path to it gets half as long.
fn root(first: &mut [i32], mut i: usize) -> usize {
    while first[i] as usize != i {
        first[i] = first[first[i] as usize];
        i = first[i] as usize;
    }
    i
}

fn distance_squared(a: [f64; 3], b: [f64; 3]) -> f64 {
    a.iter().zip(b).map(|(a, b)| (a - b) * (a - b)).sum()
}
