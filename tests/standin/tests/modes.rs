//! Every graph mode gives the same numbers, wherever the arrays are, and knows its limits.

mod common;

use common::mix::{self, Mix, N};
use common::sum::{self, Sum, sum};
use common::{Gpu, MODES, OWN, graphs, numbers};
use jax_callable::cuda::graphs::GraphCacheMax;
use jax_callable::cuda::graphs::Statistics;
use jax_callable::testing::Target;

#[test]
fn all_modes_give_the_numbers_at_addresses_that_repeat_and_move() {
    for seed in 0..6 {
        for mode in MODES {
            let gpu = Gpu::begin(seed);
            let streams = [0, 1, 0].map(|device| gpu.stream(device));
            let site = mix::site(mode).unwrap();
            for stream in &streams {
                let mut sets: Vec<_> = (0..5)
                    .map(|i| Mix::new(stream, seed + i, i % 2 == 0))
                    .collect();
                for call in 0..20 {
                    let mix = &mut sets[[0, 0, 1, 2, 0, 1, 3, 4, 4, 2][call % 10]];
                    mix.set(seed + call as u64);
                    mix.run(&site, stream).unwrap();
                    stream.wait();
                    mix.check(&format!("{mode}, seed {seed}, call {call}"));
                }
            }
        }
    }
}

/// What the graphs of a callable did while `work` ran.
fn counted(name: &str, work: impl FnOnce()) -> Statistics {
    let before = graphs(name).statistics();
    work();
    let after = graphs(name).statistics();
    Statistics {
        captures: after.captures - before.captures,
        instantiations: after.instantiations - before.instantiations,
        updates: after.updates - before.updates,
        patches: after.patches - before.patches,
        launches: after.launches - before.launches,
        hits: after.hits - before.hits,
        looped_batches: after.looped_batches - before.looped_batches,
        ungraphed_calls: after.ungraphed_calls - before.ungraphed_calls,
        evictions: after.evictions - before.evictions,
        executables: after.executables,
        staged_bytes: after.staged_bytes,
    }
}

/// Calls at addresses that are new each time.
fn move_on(name: &str, calls: u64, mut call: impl FnMut(u64)) -> Statistics {
    counted(name, || (0..calls).for_each(&mut call))
}

#[test]
fn moving_addresses_are_captured_once_and_then_patched_or_hit() {
    for (mode, expected) in [
        // One capture to instantiate, one to update, four to learn from.
        ("warp", (6, 1, 1, 8, 0)),
        ("staged", (1, 1, 0, 0, 9)),
        ("staged_ex", (1, 1, 0, 0, 9)),
    ] {
        let gpu = Gpu::begin(0);
        let stream = gpu.stream(0);
        let site = mix::site(mode).unwrap();
        let mut sets = Vec::new();
        let did = move_on(&format!("mix_{mode}"), 10, |i| {
            let mix = Mix::new(&stream, i, true);
            mix.run(&site, &stream).unwrap();
            sets.push(mix);
        });
        stream.wait();
        sets.iter().for_each(|mix| mix.check(mode));
        let got = (
            did.captures,
            did.instantiations,
            did.updates,
            did.patches,
            did.hits,
        );
        assert_eq!(got, expected, "{mode}: {did:?}");
    }
}

#[test]
fn other_bodies_give_the_numbers_in_all_modes() {
    for seed in 0..4 {
        for mode in MODES {
            for (body, expected) in [
                ("distance", sum as fn(f32, f32) -> f32),
                ("halves", |x, _| 3.0 * x),
                ("on_stack", sum),
                ("allocate", sum),
                ("fork", sum),
                ("twins", sum),
                ("scratch", sum),
                ("upload", sum),
                ("fail", sum),
            ] {
                let gpu = Gpu::begin(seed);
                let streams = [gpu.stream(2), gpu.stream(3)];
                let name = format!("{body}_{mode}");
                let site = sum::site(&name);
                for stream in &streams {
                    let sets: Vec<_> = (0..4).map(|_| Sum::new(stream, 1)).collect();
                    for call in 0..12 {
                        let set = &sets[call % 5 % 4];
                        set.run(&site, stream)
                            .unwrap_or_else(|error| panic!("{error}"));
                        if call % 3 == 0 {
                            stream.wait();
                            let what = format!("{name}, seed {seed}, call {call}");
                            // A call changes nothing of those before.
                            let called = sets.iter().take(call + 1);
                            called.for_each(|set| set.check(expected, &what));
                        }
                    }
                    stream.wait();
                    sets.iter().for_each(|set| set.check(expected, &name));
                }
            }
        }
    }
}

#[test]
fn bodies_that_are_not_understood_are_updated_and_never_patched() {
    for (body, is_patched, instantiations) in [
        ("halves", true, 1),
        ("on_stack", true, 1),
        ("distance", false, 1),
        ("fork", true, 1),
        ("twins", true, 1),
        // Graphs with allocations cannot be updated.
        ("allocate", false, 6),
    ] {
        let gpu = Gpu::begin(0);
        let stream = gpu.stream(0);
        let name = format!("{body}_warp");
        let site = sum::site(&name);
        let sets: Vec<_> = (0..6).map(|i| Sum::new(&stream, i)).collect();
        let did = move_on(&name, 6, |i| sets[i as usize].run(&site, &stream).unwrap());
        assert_eq!(did.patches > 0, is_patched, "{name}: {did:?}");
        assert_eq!(did.instantiations, instantiations, "{name}: {did:?}");
        stream.wait();
    }
}

#[test]
fn with_two_graphs_at_most_what_comes_back_is_a_hit() {
    let gpu = Gpu::begin(0);
    let stream = gpu.stream(0);
    let site = mix::site("warp").unwrap();
    let mut sets: Vec<_> = (0..3).map(|i| Mix::new(&stream, i, true)).collect();
    let graphs = graphs("mix_warp");
    graphs.set_max(GraphCacheMax::Limit(2));
    let mut hits = Vec::new();
    // A, B, A, C, A: B moves A's graph, A comes back and gets one of its own; C moves the older.
    for (call, &set) in [0, 1, 0, 2, 0, 1, 2, 1, 2, 1].iter().enumerate() {
        let mix = &mut sets[set];
        mix.set(call as u64);
        let did = counted("mix_warp", || mix.run(&site, &stream).unwrap());
        assert!(did.executables <= 2, "{did:?}");
        hits.push(did.hits);
        stream.wait();
        mix.check(&format!("call {call}"));
    }
    assert_eq!(hits, [0, 0, 0, 0, 1, 0, 0, 1, 1, 1]);

    graphs.set_max(GraphCacheMax::Limit(0));
    assert_eq!(graphs.len(), 0);
    for call in 0..3 {
        sets[0].set(call);
        let did = counted("mix_warp", || sets[0].run(&site, &stream).unwrap());
        assert_eq!((did.instantiations, did.executables), (1, 0));
        stream.wait();
        sets[0].check("a graph for each call");
    }
    graphs.set_max(GraphCacheMax::Default);
}

#[test]
fn a_batch_is_looped_over_in_one_graph() {
    const SIZE: usize = 5;
    for mode in MODES {
        let gpu = Gpu::begin(7);
        let stream = gpu.stream(0);
        let name = format!("halves_{mode}");
        let call = Target::find_cuda(&name).unwrap().call().batch_size(SIZE);
        let call = call.batched_input_shape("x", [N]).input_shape("y", [N]);
        let site = call.instantiate().unwrap();
        assert_eq!(site.operand_sizes(), [4 * N * SIZE, 4 * N]);
        let sets: Vec<_> = (0..4)
            .map(|i| {
                let x = stream.array(&numbers(i, N * SIZE));
                (x, stream.array(&[0.0; N]), stream.array(&[0.0; N * SIZE]))
            })
            .collect();
        for _ in 0..2 {
            for (x, y, z) in &sets {
                let operands = [x.address, y.address];
                // SAFETY: the arrays have the sizes of the call site, and stay.
                unsafe { site.execute(0, stream.raw(), &operands, &[z.address]) }.unwrap();
            }
        }
        stream.wait();
        for (x, _, z) in &sets {
            let expected: Vec<_> = x.get().iter().map(|x| 3.0 * x).collect();
            assert_eq!(z.get(), expected, "{mode}");
        }
    }
}

#[test]
fn a_call_site_works_with_every_version_of_the_interface() {
    for minor in 1..=5 {
        let gpu = Gpu::begin(0);
        let stream = gpu.stream(0);
        let call = Target::find_cuda("fork_warp").unwrap().call();
        let call = call.input_shape("x", [N]).input_shape("y", [N]);
        let site = call.api_version(minor).instantiate().unwrap();
        let set = Sum::new(&stream, 3);
        set.run(&site, &stream).unwrap();
        stream.wait();
        set.check(sum, &format!("API 0.{minor}"));
    }
}

#[test]
fn staging_memory_is_counted_and_given_back() {
    for mode in ["staged", "staged_ex"] {
        let gpu = Gpu::begin(0);
        let stream = gpu.stream(0);
        let site = mix::site(mode).unwrap();
        let name = format!("mix_{mode}");
        let mix = Mix::new(&stream, 1, true);
        let did = counted(&name, || mix.run(&site, &stream).unwrap());
        // Five slots of 33 numbers, each from a multiple of 256 on.
        assert_eq!(did.staged_bytes, 5 * 256, "{mode}");
        drop(site);
        assert_eq!(graphs(&name).statistics().staged_bytes, 0, "{mode}");
        stream.wait();
        mix.check(mode);
    }
}

#[test]
fn own_modes_are_those_with_graphs() {
    for mode in MODES {
        let gpu = Gpu::begin(0);
        let stream = gpu.stream(0);
        let site = mix::site(mode).unwrap();
        let mix = Mix::new(&stream, 1, true);
        mix.run(&site, &stream).unwrap();
        stream.wait();
        let live = gpu.driver.live();
        assert_eq!(
            live.executables > 0,
            OWN.contains(&mode),
            "{mode}: {live:?}"
        );
    }
}

mod staged {
    use super::common::bodies::kernels;
    use jax_callable::prelude::*;

    macro_rules! staged {
        ($($name:ident($($keys:tt)*))*) => {$(
            /// y <- x + y and z <- x.
            #[jax_callable(graph_mode = WarpStagedEx, in_out = y, $($keys)*)]
            fn $name(
                cx: &cuda::Context,
                #[dims(n)] x: cuda::Array<f32, 1>,
                #[dims(n)] mut y: cuda::ArrayMut<f32, 1>,
                #[dims(n)] mut z: cuda::ArrayMut<f32, 1>,
            ) -> Result<()> {
                if x.is_empty() {
                    return Ok(());
                }
                let n = u32::try_from(x.len())?;
                let config = cuda::LaunchConfig::for_num_elems(n);
                cx.stream().memset_zeros(&mut z)?;
                // SAFETY: all arrays have `n` elements.
                unsafe {
                    kernels::axpy.launch(cx, config, n, 1.0, &x, &mut y)?;
                    kernels::axpy.launch(cx, config, n, 1.0, &x, &mut z)
                }
            }
        )*};
    }
    staged! {
        stage_all()
        stage_none(stage_in = (), stage_out = ())
        stage_one_in(stage_in = x, stage_out = ())
        stage_one_out(stage_in = (), stage_out = z)
    }
}

#[test]
fn copies_around_a_graph_are_graphs_and_no_calls_of_their_own() {
    // How many graphs a call launches, and how many copies are in those around the body's.
    for (name, len, launches, copies) in [
        ("stage_all", N, 3, 4),
        ("stage_none", N, 1, 0),
        ("stage_one_in", N, 2, 1),
        ("stage_one_out", N, 2, 1),
        ("stage_all", 0, 1, 0),
    ] {
        let gpu = Gpu::begin(0);
        let stream = gpu.stream(0);
        let call = Target::find_cuda(name).unwrap().call();
        let call = call.input_shape("x", [len]).input_shape("y", [len]);
        let site = call.instantiate().unwrap();
        let sets = [0, 3, 6].map(|seed| [0, 1, 2].map(|i| stream.array(&numbers(seed + i, N))));
        for (call, set) in [0, 0, 1, 2, 2].into_iter().enumerate() {
            let [x, y, z] = &sets[set];
            let sum: Vec<_> = x.get().iter().zip(y.get()).map(|(x, y)| x + y).collect();
            if call == 3 {
                graphs(name).clear();
            }
            gpu.driver.arm(u64::MAX, 0);
            let (operands, results) = ([x.address, y.address], [y.address, z.address]);
            // SAFETY: the arrays have the sizes of the call site or more, and stay.
            unsafe { site.execute(0, stream.raw(), &operands, &results) }.unwrap();
            let what = format!("{name} of {len}, call {call}");
            assert_eq!(gpu.driver.calls_of("cuGraphLaunch"), launches, "{what}");
            // They are captured in the first call, and in the first after all was given up.
            let captured = if call % 3 == 0 { copies } else { 0 };
            let made = gpu.driver.calls_of("cuMemcpyDtoDAsync_v2");
            assert_eq!(made, captured, "{what}");
            // At the same addresses it also makes its context current, and orders two streams by
            // two events.
            if call == 1 || call == 4 {
                assert_eq!(gpu.driver.calls(), launches + 5, "{what}");
            }
            stream.wait();
            assert_eq!(y.get()[..len], sum[..len], "{what}");
            assert_eq!(z.get()[..len], x.get()[..len], "{what}");
        }
    }
}
