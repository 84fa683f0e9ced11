//! Bodies that do to their graphs what they should not: too much, or behind the runtime's back.

mod common;

use common::sum::{self, Sum, sum};
use common::{Gpu, MODES, OWN, graphs};
use jax_callable::cuda::graphs::GraphCacheMax;
use jax_callable::cudarc::driver::{CudaStream, sys};
use std::sync::{Arc, Mutex};

/// What a body does beside its work.
#[derive(Clone, Copy, Debug)]
enum Oddity {
    None,
    /// So many nodes more.
    Nodes(usize),
    /// Ends the capture that it runs in, and begins another.
    EndsCapture,
    /// Gives up the graphs of its own callable.
    Clears,
    /// Forbids them, and allows them again.
    Limits,
    Panics,
    /// Keeps the stream of the call.
    Keeps,
}

static ODDITY: Mutex<Oddity> = Mutex::new(Oddity::None);

/// What a body has kept.
static KEPT: Mutex<Option<Arc<CudaStream>>> = Mutex::new(None);

fn set(oddity: Oddity) {
    *ODDITY.lock().unwrap() = oddity;
}

mod bodies {
    use super::{KEPT, ODDITY, Oddity};
    use crate::common::bodies::kernels;
    use crate::common::graphs;
    use jax_callable::cuda::graphs::GraphCacheMax;
    use jax_callable::cudarc::driver::CudaStream;
    use jax_callable::cudarc::driver::sys::{CUgraphInstantiate_flags, CUstreamCaptureMode};
    use jax_callable::prelude::*;
    use std::sync::Arc;

    macro_rules! odd {
        ($($name:ident $mode:ident)*) => {$(
            /// z <- x + y, and something that is odd.
            #[jax_callable(graph_mode = $mode)]
            fn $name(
                cx: &cuda::Context,
                #[dims(n)] x: cuda::Array<f32, 1>,
                #[dims(n)] y: cuda::Array<f32, 1>,
                #[dims(n)] mut z: cuda::ArrayMut<f32, 1>,
            ) -> Result<()> {
                let n = u32::try_from(x.len())?;
                let config = cuda::LaunchConfig::for_num_elems(n);
                let (stream, name) = (cx.stream(), stringify!($name));
                let oddity = *ODDITY.lock().unwrap();
                match oddity {
                    Oddity::None => {}
                    Oddity::Nodes(count) => {
                        for _ in 0..count {
                            stream.memset_zeros(&mut z)?;
                        }
                    }
                    Oddity::EndsCapture => {
                        drop(stream.end_capture(CUgraphInstantiate_flags(0))?);
                        let mode = CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL;
                        stream.begin_capture(mode)?;
                    }
                    Oddity::Clears => graphs(name).clear(),
                    Oddity::Limits => {
                        graphs(name).set_max(GraphCacheMax::Limit(0));
                        graphs(name).set_max(GraphCacheMax::Default);
                    }
                    Oddity::Panics => panic!("it is odd"),
                    Oddity::Keeps => *KEPT.lock().unwrap() = Some(Arc::clone(stream)),
                }
                // SAFETY: all arrays have `n` elements.
                unsafe { kernels::add.launch(cx, config, n, &x, &y, &mut z) }
            }
        )*};
    }
    odd! {
        odd_none None odd_jax Jax odd_warp Warp odd_staged WarpStaged odd_staged_ex WarpStagedEx
    }

    /// A stream, which may be that of the call.
    pub struct Own(Arc<CudaStream>);

    impl Own {
        fn new(cx: &cuda::Context) -> Result<Own> {
            let oddity = *ODDITY.lock().unwrap();
            Ok(Own(match oddity {
                Oddity::Keeps => Arc::clone(cx.stream()),
                _ => cx.device().new_stream()?,
            }))
        }
    }

    /// z <- x + y, with a stream that is not used.
    #[jax_callable(graph_mode = Warp, state = Own::new(cx))]
    fn state_warp(
        cx: &cuda::Context,
        own: &cuda::PerDevice<Own>,
        #[dims(n)] x: cuda::Array<f32, 1>,
        #[dims(n)] y: cuda::Array<f32, 1>,
        #[dims(n)] mut z: cuda::ArrayMut<f32, 1>,
    ) -> Result<()> {
        let _ = &own.0;
        let n = u32::try_from(x.len())?;
        let config = cuda::LaunchConfig::for_num_elems(n);
        // SAFETY: all arrays have `n` elements.
        unsafe { kernels::add.launch(cx, config, n, &x, &y, &mut z) }
    }
}

#[test]
fn a_body_that_begins_another_capture_is_refused() {
    for mode in OWN {
        for reuses in [false, true] {
            let gpu = Gpu::begin(0);
            let stream = gpu.stream(0);
            let site = sum::site(&format!("odd_{mode}"));
            let arrays = Sum::new(&stream, 1);
            set(Oddity::EndsCapture);
            gpu.driver.reuse_graphs(reuses);
            let result = arrays.run(&site, &stream);
            gpu.driver.reuse_graphs(false);
            set(Oddity::None);
            let error = result.unwrap_err().to_string();
            assert!(error.contains("has ended the capture"), "{mode}: {error}");
            assert_eq!(gpu.driver.live().captures, 0, "{mode}");
            arrays.run(&site, &stream).unwrap();
            stream.wait();
            arrays.check(sum, mode);
        }
    }
}

#[test]
fn a_site_whose_graph_is_too_large_keeps_nothing() {
    const MOST: usize = 1 << 14;
    for mode in OWN {
        for was_small in [false, true] {
            let gpu = Gpu::begin(0);
            let stream = gpu.stream(0);
            let name = format!("odd_{mode}");
            let site = sum::site(&name);
            let sets = [1, 2, 3].map(|seed| Sum::new(&stream, seed));
            let before = graphs(&name).statistics();
            if was_small {
                // With the kernel, and in mode WarpStaged with three copies, just not too large.
                let others = if mode == "staged" { 4 } else { 1 };
                set(Oddity::Nodes(MOST - others));
                sets[0].run(&site, &stream).unwrap();
                if mode != "warp" {
                    graphs(&name).clear();
                }
            }
            set(Oddity::Nodes(MOST));
            sets.iter().for_each(|set| set.run(&site, &stream).unwrap());
            set(Oddity::None);
            let after = graphs(&name).statistics();
            let evictions = after.evictions - before.evictions;
            let ungraphed = after.ungraphed_calls - before.ungraphed_calls;
            assert_eq!((after.executables, after.staged_bytes), (0, 0), "{mode}");
            assert_eq!(evictions, u64::from(was_small), "{mode}");
            // At addresses that it has had, the small one is launched.
            let hits = u64::from(was_small && mode == "warp");
            assert_eq!(ungraphed, 3 - hits, "{mode}");
            stream.wait();
            sets.iter().for_each(|set| set.check(sum, mode));
        }
    }
}

#[test]
fn bodies_that_give_up_graphs_or_panic_harm_no_other_call() {
    for seed in 0..4 {
        for mode in OWN {
            for oddity in [Oddity::Clears, Oddity::Limits, Oddity::Panics] {
                let gpu = Gpu::begin(seed);
                let stream = gpu.stream(0);
                let name = format!("odd_{mode}");
                let site = sum::site(&name);
                let sets: Vec<_> = (0..9).map(|seed| Sum::new(&stream, seed)).collect();
                for (call, arrays) in sets.iter().enumerate() {
                    set(if call % 3 == 2 { Oddity::None } else { oddity });
                    let result = arrays.run(&site, &stream);
                    set(Oddity::None);
                    if let Err(error) = result {
                        let error = error.to_string();
                        assert!(error.contains("panicked: it is odd"), "{error}");
                        arrays.run(&site, &stream).unwrap();
                    }
                }
                stream.wait();
                sets.iter().for_each(|set| set.check(sum, &name));
                graphs(&name).set_max(GraphCacheMax::Limit(0));
                assert_eq!(graphs(&name).len(), 0, "{name} {oddity:?}");
                graphs(&name).set_max(GraphCacheMax::Default);
            }
        }
    }
}

#[test]
fn kernels_whose_parameters_are_not_told_are_not_patched() {
    let gpu = Gpu::begin(0);
    let stream = gpu.stream(0);
    let site = sum::site("odd_warp");
    let sets = [1, 2, 3, 4, 5].map(|seed| Sum::new(&stream, seed));
    let before = graphs("odd_warp").statistics();
    // Modules are loaded by then, and were checked.
    sets[0].run(&site, &stream).unwrap();
    gpu.driver.hide_params(true);
    let results = sets.each_ref().map(|set| set.run(&site, &stream));
    gpu.driver.hide_params(false);
    results.into_iter().for_each(|result| result.unwrap());
    let after = graphs("odd_warp").statistics();
    assert_eq!(after.patches, before.patches);
    assert_eq!(after.updates, before.updates + 4);
    stream.wait();
    sets.iter().for_each(|set| set.check(sum, "hidden"));
}

#[test]
fn what_a_body_keeps_of_the_call_is_refused() {
    for mode in MODES {
        let gpu = Gpu::begin(0);
        let stream = gpu.stream(0);
        let site = sum::site(&format!("odd_{mode}"));
        let arrays = Sum::new(&stream, 1);
        set(Oddity::Keeps);
        let error = arrays.run(&site, &stream).unwrap_err().to_string();
        set(Oddity::None);
        assert!(
            error.contains("has kept a clone of `cx.stream()`, or memory or a handle"),
            "{mode}: {error}"
        );
        assert!(!error.contains("graph_mode"), "{mode}: {error}");
        arrays.run(&site, &stream).unwrap();
        stream.wait();
        arrays.check(sum, mode);
        drop(site);
        // It is refused, but there: a graph's own stream is not destroyed.
        let kept = KEPT.lock().unwrap().take().unwrap();
        kept.synchronize().unwrap();
        if OWN.contains(&mode) {
            // SAFETY: nobody else has it.
            unsafe { sys::cuStreamDestroy_v2(kept.cu_stream()) };
        }
    }
}

#[test]
fn what_a_state_or_a_body_without_a_graph_keeps_is_refused() {
    for (name, prefix) in [
        ("state_warp", ".state_warp: cannot build its state: "),
        ("odd_staged", ".odd_staged: "),
    ] {
        let gpu = Gpu::begin(0);
        let stream = gpu.stream(0);
        let site = sum::site(name);
        let arrays = Sum::new(&stream, 1);
        if name == "odd_staged" {
            set(Oddity::Nodes(1 << 14));
            arrays.run(&site, &stream).unwrap();
        }
        set(Oddity::Keeps);
        let result = arrays.run(&site, &stream);
        set(Oddity::None);
        let error = result.unwrap_err().to_string();
        let expected = format!("{prefix}the function has kept a clone of `cx.stream()`");
        assert!(error.contains(&expected), "{error}");
        assert_eq!(KEPT.lock().unwrap().take().is_some(), name == "odd_staged");
        arrays.run(&site, &stream).unwrap();
        stream.wait();
        arrays.check(sum, name);
    }
}
