//! What the harness itself must notice and give.

mod batches;
pub(super) mod targets;

use super::*;
use crate::prelude::*;

/// The number of calls, the device, the run and the size of the pool.
#[jax_callable(state = std::sync::atomic::AtomicI64::new(0))]
fn about(
    cx: &cpu::Context,
    calls: &State<std::sync::atomic::AtomicI64>,
    #[dims(n)] x: cpu::Array<f32, 1>,
    #[dims(4)] mut y: cpu::ArrayMut<i64, 1>,
) -> Result<()> {
    let _ = x;
    y[0] = calls.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    y[1] = cx.device_ordinal()? as i64;
    y[2] = cx.run_id()?;
    y[3] = cx.num_threads() as i64;
    Ok(())
}

fn call(name: &str) -> Call {
    Target::find(name).unwrap().call()
}

#[test]
fn a_call_site_is_instantiated_once_and_run_often() {
    for minor in 1..=5 {
        let call = call("about").api_version(minor).input("x", [1], &[1.0_f32]);
        let [one, other] = [(); 2].map(|()| call.instantiate().unwrap());
        let y = |site: &CallSite, call: &Call| site.run(call).unwrap().get::<i64>("y");
        assert_eq!(y(&one, &call), [0, 0, 1, 2]);
        let elsewhere = call.clone().device_ordinal(3).run_id(7).num_threads(5);
        assert_eq!(y(&one, &elsewhere), [1, 3, 7, 5]);
        assert_eq!(y(&other, &call), [0, 0, 1, 2]);
        // From many threads at once.
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| (0..5).for_each(|_| drop(one.run(&call).unwrap())));
            }
        });
        assert_eq!(y(&one, &call)[0], 22);
    }
}

#[test]
#[should_panic = "`about` is called with other shapes or static attributes than its call site has"]
fn a_call_site_has_its_shapes() {
    let site = call("about").input_shape("x", [2]).instantiate().unwrap();
    let _ = site.run(&call("about").input("x", [1], &[1.0_f32]));
}

#[test]
fn errors_without_a_frame_have_the_target_too() {
    let error = call("halves").input("x", [3], &[1_i32, 2, 3]).run();
    let error = error.unwrap_err().to_string();
    let start = format!("{}: parameter `y`", Target::find("halves").unwrap().path());
    assert!(error.starts_with(&start), "{error}");
}

#[jax_callable]
fn halves(#[dims(n)] x: cpu::Array<i32, 1>, #[dims(n - 4)] mut y: cpu::ArrayMut<i32, 1>) {
    y[0] = x[0];
}

#[test]
fn metadata() {
    let metadata = Target::find("about").unwrap().metadata();
    assert_eq!(metadata.api_version, (0, 1));
    assert!(!metadata.command_buffer_compatible);
}

/// Writes where it is told to, in or out of bounds.
#[jax_callable(in_out = "z")]
fn stray(
    place: i64,
    x: cpu::Array<u8, 1>,
    mut z: cpu::ArrayMut<u8, 1>,
    mut y: cpu::ArrayMut<u8, 1>,
    #[dims(5)] mut w: cpu::Scratch<u8, 1>,
) {
    let start = match place >> 8 {
        0 => x.as_ptr().cast_mut(),
        1 => y.as_mut_ptr(),
        2 => z.as_mut_ptr(),
        _ => w.as_mut_ptr(),
    };
    // SAFETY: none: this is the mistake that the harness is to see. It stays within its borders.
    #[allow(unsafe_code)]
    unsafe {
        start
            .wrapping_offset((place & 0xFF) as i8 as isize)
            .write_volatile(7);
    }
}

#[test]
#[cfg_attr(miri, ignore = "it is out of bounds")]
fn writes_out_of_bounds_are_seen() {
    let seen = |array: i64, offset: i8, alias: bool| {
        let place = array << 8 | i64::from(offset as u8);
        let call = call("stray").value("place", place).alias_in_outs(alias);
        let call = call.input("x", [5], &[0_u8; 5]).input("z", [5], &[0_u8; 5]);
        let run = std::panic::AssertUnwindSafe(|| drop(call.run().unwrap()));
        let panic = std::panic::catch_unwind(run).err()?;
        Some(panic.downcast_ref::<String>().cloned().unwrap_or_default())
    };
    for (array, name) in [(0, "x"), (1, "y"), (2, "z"), (3, "w")] {
        for alias in [true, false] {
            for offset in [-64, -1, 5, 16, 60] {
                let expected = Some(format!("memory around `{name}` was written"));
                assert_eq!(seen(array, offset, alias), expected, "{offset}");
            }
            let inside = seen(array, 4, alias);
            match name {
                "x" => assert!(
                    inside
                        .unwrap()
                        .contains("`x`, which is only read, was written")
                ),
                _ => assert_eq!(inside, None),
            }
        }
    }
}

#[cfg(feature = "ndarray")]
#[test]
fn arrays_of_any_layout() {
    use ndarray::{Ix1, Ix2, Ix3, array};

    let x = array![[1_i32, 2], [3, 4], [5, 6]];
    let sums = call("row_sums").input_array("x", &x.t());
    assert_eq!(sums.run().unwrap().array::<i32, Ix1>("y"), array![9, 12]);
    let batch = array![[[1_i32, 2]], [[3, 4]], [[5, 6]]];
    let sums = call("row_sums")
        .batch_size(3)
        .batched_input_array("x", &batch);
    let y = sums.run().unwrap();
    assert_eq!(y.array::<i32, Ix2>("y"), array![[3], [7], [11]]);
    // Packed elements, not two more axes.
    let z = y.array::<[i32; 2], Ix3>("z");
    assert_eq!(z.shape(), [3, 1, 1]);
    assert_eq!(z.into_raw_vec_and_offset().0, [[1, 2], [3, 4], [5, 6]]);
}

#[cfg(feature = "ndarray")]
#[test]
#[should_panic = "`y` has the shape [1], of another rank"]
fn arrays_have_their_rank() {
    let sums = call("row_sums").input("x", [1, 2], &[1, 2]).run().unwrap();
    sums.array::<i32, ndarray::Ix2>("y");
}

#[cfg(feature = "ndarray")]
#[jax_callable]
fn row_sums(
    #[dims(n, m)] x: cpu::Array<i32, 2>,
    #[dims(n)] mut y: cpu::ArrayMut<i32, 1>,
    #[dims(n, 1)] mut z: cpu::ArrayMut<[i32; 2], 2>,
) {
    for (i, row) in x.chunks(x.dim(1)).enumerate() {
        y[i] = row.iter().sum();
        z[[i, 0]] = [row[0], row[row.len() - 1]];
    }
}
