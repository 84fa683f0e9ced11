//! What happens while calls are in flight, captured, or fail.

mod common;

use common::bodies::FAIL;
use common::mix::{self, Mix, N};
use common::sum::{self, Sum, sum};
use common::{Gpu, OWN, Stream, graphs, numbers};
use jax_callable::Result;
use jax_callable::cuda::graphs::GraphCacheMax;
use jax_callable::cudarc::driver::sys::{self, CUresult, CUstreamCaptureMode as Mode};
use jax_callable::testing::CallSite;
use std::ptr::{null_mut, without_provenance_mut};
use std::sync::atomic::Ordering;

/// z <- x + y at new addresses: the call, and whether the numbers were right.
fn run_sum(site: &CallSite, stream: &Stream) -> (Result<()>, bool) {
    let set = Sum::new(stream, 1);
    let result = set.run(site, stream);
    stream.wait();
    (result, set.is(sum))
}

#[track_caller]
fn expect_sum(site: &CallSite, stream: &Stream) {
    let (result, is_right) = run_sum(site, stream);
    result.unwrap();
    assert!(is_right);
}

#[test]
fn graphs_are_updated_cleared_evicted_and_dropped_in_flight() {
    for seed in 0..10 {
        for mode in OWN {
            let gpu = Gpu::begin(seed);
            let stream = gpu.stream(0);
            let graphs = graphs(&format!("mix_{mode}"));
            let site = mix::site(mode).unwrap();
            let mut sets: Vec<_> = (0..12).map(|i| Mix::new(&stream, i, i % 3 > 0)).collect();
            for (i, mix) in sets.iter_mut().enumerate() {
                mix.run(&site, &stream).unwrap();
                match i {
                    3 | 7 => graphs.clear(),
                    5 => graphs.set_max(GraphCacheMax::Limit(0)),
                    6 => graphs.set_max(GraphCacheMax::Default),
                    _ => {}
                }
            }
            drop(site);
            assert_eq!((graphs.len(), graphs.statistics().staged_bytes), (0, 0));
            stream.wait();
            sets.iter()
                .for_each(|mix| mix.check(&format!("{mode}, seed {seed}")));
        }
    }
}

#[test]
fn streams_share_staging_memory_in_turn() {
    for seed in 0..20 {
        for mode in ["staged", "staged_ex"] {
            let gpu = Gpu::begin(seed);
            let streams = [gpu.stream(0), gpu.stream(0)];
            let site = mix::site(mode).unwrap();
            let sets: Vec<_> = (0..8)
                .map(|i| Mix::new(&streams[i as usize % 2], i, true))
                .collect();
            for (i, mix) in sets.iter().enumerate() {
                mix.run(&site, &streams[i % 2]).unwrap();
            }
            streams.iter().for_each(Stream::wait);
            sets.iter()
                .for_each(|mix| mix.check(&format!("{mode}, seed {seed}")));
        }
    }
}

#[test]
fn a_body_that_waits_is_told_what_to_change_and_harms_nobody() {
    for mode in OWN {
        let gpu = Gpu::begin(0);
        let stream = gpu.stream(0);
        let site = sum::site(&format!("wait_{mode}"));
        for _ in 0..2 {
            let (result, _) = run_sum(&site, &stream);
            let error = result.unwrap_err().to_string();
            for part in [
                &*format!("in_flight.wait_{mode}: "),
                "captured",
                "graph_mode = None",
            ] {
                assert!(error.contains(part), "{error}");
            }
            assert_eq!(gpu.driver.live().captures, 0);
        }
        assert_eq!(graphs(&format!("wait_{mode}")).len(), 0);
        expect_sum(&sum::site("wait_none"), &stream);
    }
}

#[test]
fn a_body_that_fails_in_any_capture_leaves_the_next_call_right() {
    for mode in OWN {
        // In the capture that is instantiated, in that of the update, in each to learn from.
        for run in 1..8 {
            let gpu = Gpu::begin(0);
            let stream = gpu.stream(0);
            let site = sum::site(&format!("fail_{mode}"));
            let mut failures = 0;
            FAIL.store(run, Ordering::SeqCst);
            for call in 0..8 {
                let (result, is_right) = run_sum(&site, &stream);
                match result {
                    Ok(()) => assert!(is_right, "{mode}, call {call}"),
                    Err(error) => {
                        assert!(error.to_string().contains("this one fails"), "{error}");
                        failures += 1;
                    }
                }
            }
            // What is only learnt from is not the call's error; hits and patches run no body.
            let is_call = run == 1 || mode == "warp" && run == 2;
            assert_eq!(failures, usize::from(is_call), "{mode}, run {run}");
            FAIL.store(0, Ordering::SeqCst);
            expect_sum(&site, &stream);
        }
    }
}

#[test]
fn copies_from_memory_of_a_body_are_refused_in_captures() {
    for mode in OWN {
        let gpu = Gpu::begin(0);
        let stream = gpu.stream(0);
        let (result, _) = run_sum(&sum::site(&format!("dangle_{mode}")), &stream);
        let error = result.unwrap_err().to_string();
        assert!(error.contains("cx.upload"), "{error}");
        expect_sum(&sum::site(&format!("upload_{mode}")), &stream);
        expect_sum(&sum::site("dangle_none"), &stream);
    }
}

/// Calls `work` while a call of `meet_{mode}` is captured on another thread, with that call's
/// stream.
fn during_a_capture(gpu: &Gpu, mode: &str, work: impl Fn(&Stream) + Sync) {
    let stream = gpu.stream(0);
    let site = sum::site(&format!("meet_{mode}"));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            MEET.wait();
            // The body waits for this thread whatever comes of the work.
            let work = std::panic::AssertUnwindSafe(|| work(&stream));
            let outcome = std::panic::catch_unwind(work);
            MEET.wait();
            outcome.unwrap();
        });
        expect_sum(&site, &stream);
    });
}

/// Where a body of `meet` waits for another thread.
static MEET: std::sync::Barrier = std::sync::Barrier::new(2);

mod meet {
    use super::MEET;
    use jax_callable::prelude::*;

    macro_rules! meet {
        ($($name:ident $mode:ident)*) => {$(
            /// z <- x + y, in a body during which another thread does something.
            #[jax_callable(graph_mode = $mode)]
            fn $name(
                cx: &cuda::Context,
                #[dims(n)] x: cuda::Array<f32, 1>,
                #[dims(n)] y: cuda::Array<f32, 1>,
                #[dims(n)] mut z: cuda::ArrayMut<f32, 1>,
            ) -> Result<()> {
                let n = u32::try_from(x.len())?;
                let config = cuda::LaunchConfig::for_num_elems(n);
                cx.stream().memcpy_dtod(&x, &mut z)?;
                MEET.wait();
                MEET.wait();
                // SAFETY: both arrays have `n` elements.
                unsafe { crate::common::bodies::kernels::axpy.launch(cx, config, n, 1.0, &y, &mut z) }
            }
        )*};
    }
    meet! { meet_warp Warp meet_staged WarpStaged meet_staged_ex WarpStagedEx }
}

#[test]
fn other_threads_allocate_and_use_the_stream_during_a_capture() {
    for mode in OWN {
        let gpu = Gpu::begin(0);
        during_a_capture(&gpu, mode, |stream| {
            let context = gpu.driver.context(0) as usize;
            let array = stream.array(&[0.0]);
            let mut address = 0;
            // SAFETY: the context is that of an open device, and the stream is of it.
            let results = unsafe {
                [
                    sys::cuCtxSetCurrent(without_provenance_mut(context)),
                    sys::cuMemAlloc_v2(&mut address, 4),
                    sys::cuMemsetD8Async(array.address, 1, 4, stream.raw().cast()),
                    sys::cuStreamSynchronize(stream.raw().cast()),
                    sys::cuMemFree_v2(address),
                ]
            };
            assert_eq!(results, [CUresult::CUDA_SUCCESS; 5]);
            // It ran, and is in no graph.
            assert_eq!(array.get(), [f32::from_bits(0x0101_0101)]);
        });
    }
}

#[test]
fn graphs_of_other_sites_are_cleared_during_a_capture() {
    for mode in OWN {
        let gpu = Gpu::begin(0);
        let other = mix::site(mode).unwrap();
        let of_other = gpu.stream(1);
        let mix = Mix::new(&of_other, 1, true);
        mix.run(&other, &of_other).unwrap();
        during_a_capture(&gpu, mode, |_| {
            graphs(&format!("mix_{mode}")).clear();
            graphs(&format!("meet_{mode}")).clear();
        });
        of_other.wait();
        mix.check(mode);
        assert_eq!(graphs(&format!("mix_{mode}")).len(), 0);
    }
}

#[test]
fn threads_keep_their_context_and_capture_mode() {
    for mode in OWN {
        let gpu = Gpu::begin(0);
        let stream = gpu.stream(5);
        let site = mix::site(mode).unwrap();
        let mix = Mix::new(&stream, 1, true);
        mix.run(&site, &stream).unwrap();
        let other = gpu.stream(6);
        for current in [
            null_mut(),
            without_provenance_mut(gpu.driver.context(6) as usize),
        ] {
            // SAFETY: the context of an open device, or none.
            unsafe { sys::cuCtxSetCurrent(current) };
            graphs(&format!("mix_{mode}")).clear();
            let mut found = null_mut();
            let mut capture_mode = Mode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL;
            // SAFETY: the driver writes a handle, and exchanges the mode twice.
            unsafe {
                sys::cuCtxGetCurrent(&mut found);
                sys::cuThreadExchangeStreamCaptureMode(&mut capture_mode);
                assert_eq!(capture_mode, Mode::CU_STREAM_CAPTURE_MODE_GLOBAL);
                sys::cuThreadExchangeStreamCaptureMode(&mut capture_mode);
            }
            assert_eq!(found, current);
            stream.wait();
            mix.run(&site, &stream).unwrap();
        }
        drop(other);
        stream.wait();
    }
}

#[test]
fn xla_captures_jax_mode_and_launches_it() {
    for (body, is_captured) in [("upload", true), ("dangle", false), ("wait", false)] {
        let gpu = Gpu::begin(0);
        let stream = gpu.stream(0);
        let site = sum::site(&format!("{body}_jax"));
        // Not while it captures: INITIALIZE comes first.
        expect_sum(&site, &stream);
        let [x, y, z] = [1, 2, 3].map(|seed| stream.array(&numbers(seed, N)));
        let (mut own, mut graph, mut executable) = (null_mut(), null_mut(), null_mut());
        // SAFETY: as XLA does it, on a stream of its own.
        unsafe {
            let context = gpu.driver.context(0) as usize;
            sys::cuCtxSetCurrent(without_provenance_mut(context));
            sys::cuStreamCreate(&mut own, 1);
            sys::cuStreamBeginCapture_v2(own, Mode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
            let result = site.execute(0, own.cast(), &[x.address, y.address], &[z.address]);
            sys::cuStreamEndCapture(own, &mut graph);
            assert_eq!(result.is_ok(), is_captured, "{body}: {result:?}");
            if is_captured {
                sys::cuGraphInstantiateWithFlags(&mut executable, graph, 0);
                drop(site);
                for _ in 0..2 {
                    sys::cuGraphLaunch(executable, own);
                }
                sys::cuGraphExecDestroy(executable);
                sys::cuStreamSynchronize(own);
            } else {
                let error = result.unwrap_err().to_string();
                assert!(error.contains("XLA captured the call"), "{error}");
            }
            if !graph.is_null() {
                sys::cuGraphDestroy(graph);
            }
            sys::cuStreamDestroy_v2(own);
            sys::cuCtxSetCurrent(null_mut());
        }
        if is_captured {
            let expected: Vec<_> = x.get().iter().zip(y.get()).map(|(x, y)| x + y).collect();
            assert_eq!(z.get(), expected, "{body}");
        }
    }
}
