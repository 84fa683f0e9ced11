//! The stand-in sees what it is there to see: each misuse, and each rule of captures.

mod common;

use common::{Array, Gpu, Stream};
use jax_callable::cudarc::driver::sys::{self, CUresult, CUstreamCaptureMode as Mode};
use std::ptr::{null_mut, without_provenance_mut};

/// Makes a device current, and calls `work` with its stream in the driver's terms.
fn on<T>(gpu: &Gpu, stream: &Stream, work: impl FnOnce(sys::CUstream) -> T) -> T {
    let context = gpu.driver.context(stream.device);
    // SAFETY: it is the context of a device that is open.
    unsafe { sys::cuCtxSetCurrent(without_provenance_mut(context as usize)) };
    let value = work(stream.raw().cast());
    // SAFETY: none is current then.
    unsafe { sys::cuCtxSetCurrent(null_mut()) };
    value
}

fn fill(array: &Array, count: usize, stream: sys::CUstream) -> CUresult {
    // SAFETY: none where a test asks for misuse: that is what it is about.
    unsafe { sys::cuMemsetD8Async(array.address, 1, count, stream) }
}

#[track_caller]
fn expect_misuse(gpu: &Gpu, what: &str) {
    gpu.driver.finish();
    let misuses = gpu.driver.misuses();
    assert!(
        misuses.contains(what) && misuses.lines().count() == 1,
        "{misuses}"
    );
}

#[test]
fn work_that_nobody_waits_for_has_not_run() {
    let gpu = Gpu::begin(0);
    let stream = gpu.stream(0);
    let array = stream.array(&[0.0]);
    assert_eq!(
        on(&gpu, &stream, |s| fill(&array, 4, s)),
        CUresult::CUDA_SUCCESS
    );
    assert_eq!(array.get(), [0.0]);
    stream.wait();
    assert_eq!(array.get(), [f32::from_bits(0x0101_0101)]);
}

#[test]
fn memory_is_not_used_after_its_end_or_out_of_its_bounds() {
    let gpu = Gpu::begin(0);
    let stream = gpu.stream(0);
    let array = stream.array(&[0.0]);
    on(&gpu, &stream, |s| fill(&array, 5, s));
    expect_misuse(&gpu, "5 bytes");
    on(&gpu, &stream, |s| fill(&array, 4, s));
    drop(array);
    expect_misuse(&gpu, "were freed");
}

#[test]
fn memory_of_another_device_is_refused() {
    let gpu = Gpu::begin(0);
    let streams = [gpu.stream(0), gpu.stream(1)];
    let array = streams[0].array(&[0.0]);
    on(&gpu, &streams[1], |s| fill(&array, 4, s));
    expect_misuse(&gpu, "are of device 0");
}

#[test]
fn work_needs_its_device_to_be_current() {
    let gpu = Gpu::begin(0);
    let streams = [gpu.stream(0), gpu.stream(1)];
    let array = streams[1].array(&[0.0]);
    on(&gpu, &streams[0], |_| {
        fill(&array, 4, streams[1].raw().cast())
    });
    expect_misuse(&gpu, "of device 1, with Some(0) current");
    fill(&array, 4, streams[1].raw().cast());
    expect_misuse(&gpu, "of device 1, with None current");
}

#[test]
fn handles_end() {
    let gpu = Gpu::begin(0);
    let stream = gpu.stream(0);
    on(&gpu, &stream, |s| {
        let mut event = null_mut();
        // SAFETY: the last call is the misuse that the stand-in is to see.
        let result = unsafe {
            sys::cuEventCreate(&mut event, 0);
            sys::cuEventDestroy_v2(event);
            sys::cuEventRecord(event, s)
        };
        assert_eq!(result, CUresult::CUDA_ERROR_INVALID_HANDLE);
    });
    expect_misuse(&gpu, "is used after its end");
}

#[test]
fn events_end_with_their_device_current() {
    let gpu = Gpu::begin(0);
    let stream = gpu.stream(0);
    let other = gpu.stream(1);
    on(&gpu, &stream, |_| {
        let mut event = null_mut();
        // SAFETY: it is made and destroyed here; the context is that of an open device.
        unsafe {
            sys::cuEventCreate(&mut event, 2);
            let context = gpu.driver.context(1) as usize;
            sys::cuCtxSetCurrent(without_provenance_mut(context));
            let result = sys::cuEventDestroy_v2(event);
            assert_ne!(result, CUresult::CUDA_SUCCESS);
            let context = gpu.driver.context(0) as usize;
            sys::cuCtxSetCurrent(without_provenance_mut(context));
            sys::cuEventDestroy_v2(event);
        }
    });
    drop(other);
    expect_misuse(&gpu, "the end of an event of device 0");
}

#[test]
fn foreign_streams_are_not_captured() {
    let gpu = Gpu::begin(0);
    let stream = gpu.stream(0);
    on(&gpu, &stream, |s| {
        let mut graph = null_mut();
        // SAFETY: the capture is begun and ended here.
        unsafe {
            sys::cuStreamBeginCapture_v2(s, Mode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
            sys::cuStreamEndCapture(s, &mut graph);
            sys::cuGraphDestroy(graph);
        }
    });
    expect_misuse(&gpu, "a capture is begun on a foreign stream");
}

#[test]
fn graphs_are_not_launched_on_foreign_streams() {
    let gpu = Gpu::begin(0);
    let stream = gpu.stream(0);
    on(&gpu, &stream, |s| {
        let (mut own, mut graph, mut executable) = (null_mut(), null_mut(), null_mut());
        // SAFETY: all is made and destroyed here.
        unsafe {
            sys::cuStreamCreate(&mut own, 1);
            sys::cuStreamBeginCapture_v2(own, Mode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
            sys::cuStreamEndCapture(own, &mut graph);
            sys::cuGraphInstantiateWithFlags(&mut executable, graph, 0);
            sys::cuGraphLaunch(executable, s);
            sys::cuGraphExecDestroy(executable);
            sys::cuGraphDestroy(graph);
            sys::cuStreamDestroy_v2(own);
        }
    });
    expect_misuse(&gpu, "a graph is launched on a foreign stream");
}

/// A capture of a mode on a stream of its own, around `work`: what ended it, and whether there is a
/// graph.
fn captured(gpu: &Gpu, mode: Mode, work: impl FnOnce(sys::CUstream)) -> (CUresult, bool) {
    let stream = gpu.stream(0);
    on(gpu, &stream, |_| {
        let (mut own, mut graph) = (null_mut(), null_mut());
        // SAFETY: the stream is made, captured and destroyed here.
        unsafe {
            sys::cuStreamCreate(&mut own, 1);
            sys::cuStreamBeginCapture_v2(own, mode);
            work(own);
            let ended = sys::cuStreamEndCapture(own, &mut graph);
            if !graph.is_null() {
                sys::cuGraphDestroy(graph);
            }
            sys::cuStreamDestroy_v2(own);
            (ended, !graph.is_null())
        }
    })
}

#[test]
fn a_capture_of_this_thread_forbids_what_is_unsafe() {
    let gpu = Gpu::begin(0);
    let allocate = |_| {
        let mut address = 0;
        // SAFETY: the driver writes one address, or nothing.
        let result = unsafe { sys::cuMemAlloc_v2(&mut address, 4) };
        if result == CUresult::CUDA_SUCCESS {
            gpu.driver.free(address);
        }
        result
    };
    let unsupported = CUresult::CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    let broken = (CUresult::CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, false);
    let whole = (CUresult::CUDA_SUCCESS, true);
    for (mode, in_this, in_another) in [
        (Mode::CU_STREAM_CAPTURE_MODE_GLOBAL, broken, broken),
        (Mode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL, broken, whole),
        (Mode::CU_STREAM_CAPTURE_MODE_RELAXED, whole, whole),
    ] {
        let here = captured(&gpu, mode, |s| {
            let refused = allocate(s) == unsupported;
            assert_eq!(refused, in_this == broken);
        });
        assert_eq!(here, in_this, "{mode:?}");
        let elsewhere = captured(&gpu, mode, |_| {
            std::thread::scope(|scope| {
                let context = gpu.driver.context(0) as usize;
                scope.spawn(move || {
                    // SAFETY: the context of an open device; memory is freed again.
                    unsafe {
                        sys::cuCtxSetCurrent(without_provenance_mut(context));
                        let mut address = 0;
                        sys::cuMemAlloc_v2(&mut address, 4);
                        if address != 0 {
                            sys::cuMemFree_v2(address);
                        }
                    }
                });
            });
        });
        assert_eq!(elsewhere, in_another, "{mode:?}");
    }
}

#[test]
fn waiting_for_a_captured_stream_breaks_the_capture() {
    let gpu = Gpu::begin(0);
    let ended = captured(&gpu, Mode::CU_STREAM_CAPTURE_MODE_RELAXED, |stream| {
        // SAFETY: the stream is alive.
        let result = unsafe { sys::cuStreamSynchronize(stream) };
        assert_eq!(result, CUresult::CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    });
    assert_eq!(
        ended,
        (CUresult::CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, false)
    );
}

#[test]
fn what_forks_must_join() {
    let gpu = Gpu::begin(0);
    let array = gpu.stream(0).array(&[0.0]);
    let mode = Mode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL;
    for (joins, expected) in [
        (true, (CUresult::CUDA_SUCCESS, true)),
        (false, (CUresult::CUDA_ERROR_STREAM_CAPTURE_UNJOINED, false)),
    ] {
        let (mut other, mut event) = (null_mut(), null_mut());
        let ended = captured(&gpu, mode, |stream| {
            // SAFETY: the handles are made here, and alive to the end of the capture.
            unsafe {
                sys::cuStreamCreate(&mut other, 1);
                sys::cuEventCreate(&mut event, 0);
                sys::cuEventRecord(event, stream);
                sys::cuStreamWaitEvent(other, event, 0);
                fill(&array, 4, other);
                if joins {
                    sys::cuEventRecord(event, other);
                    sys::cuStreamWaitEvent(stream, event, 0);
                }
            }
        });
        assert_eq!(ended, expected);
        let stream = gpu.stream(0);
        on(&gpu, &stream, |_| {
            // SAFETY: both are used no more.
            unsafe {
                (
                    sys::cuStreamDestroy_v2(other),
                    sys::cuEventDestroy_v2(event),
                )
            }
        });
    }
}

#[test]
fn work_waits_for_events_in_every_order() {
    for seed in 0..50 {
        let gpu = Gpu::begin(seed);
        let streams = [gpu.stream(0), gpu.stream(0)];
        let array = streams[0].array(&[0.0]);
        let mut event = null_mut();
        on(&gpu, &streams[0], |first| {
            let second = streams[1].raw().cast();
            // SAFETY: all of it is alive until the streams were waited for.
            unsafe {
                sys::cuEventCreate(&mut event, 0);
                sys::cuMemsetD8Async(array.address, 1, 4, first);
                sys::cuEventRecord(event, first);
                sys::cuStreamWaitEvent(second, event, 0);
                sys::cuMemsetD8Async(array.address, 2, 4, second);
                sys::cuEventDestroy_v2(event);
            }
        });
        streams[1].wait();
        assert_eq!(array.get(), [f32::from_bits(0x0202_0202)], "seed {seed}");
    }
}

#[test]
fn the_call_that_is_to_fail_fails_and_no_other() {
    let gpu = Gpu::begin(0);
    let stream = gpu.stream(0);
    let array = stream.array(&[0.0]);
    on(&gpu, &stream, |s| {
        gpu.driver.arm(1, 719);
        let results = [4, 4, 4].map(|count| fill(&array, count, s));
        let failed = CUresult::CUDA_ERROR_LAUNCH_FAILED;
        assert_eq!(
            results,
            [CUresult::CUDA_SUCCESS, failed, CUresult::CUDA_SUCCESS]
        );
        assert_eq!(gpu.driver.failures(), (1, "cuMemsetD8Async".to_owned()));
        assert_eq!(gpu.driver.calls(), 3);
        gpu.driver.arm(0, 2);
        gpu.driver
            .exempt(|| assert_eq!(fill(&array, 4, s), CUresult::CUDA_SUCCESS));
        assert_eq!(gpu.driver.calls(), 0);
        gpu.driver.arm(u64::MAX, 0);
    });
    stream.wait();
}
