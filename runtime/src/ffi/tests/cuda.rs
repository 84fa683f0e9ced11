//! What can be known of handlers for GPUs without one.

use crate::ffi::host::{self, Context, Failure};
use crate::ffi::host_frame::{self, BufferSpec, FrameSpec};
use crate::ffi::{entry, sys};
use crate::param::Definition;
use crate::prelude::*;
use crate::registry::{Handlers, registrations};
use std::ptr;

#[jax_callable]
fn on_gpu(x: cuda::Array<f32, 1>, y: cuda::ArrayMut<f32, 1>) {
    assert_eq!(x.shape(), y.shape());
}

#[jax_callable(graph_mode = None)]
fn uncaptured(cx: &cuda::Context, x: cuda::Array<f32, 1>, y: cuda::ArrayMut<f32, 1>) {
    let _ = (cx.device_ordinal(), x, y);
}

#[jax_callable(graph_mode = Warp)]
fn own_graph(x: cuda::Array<f32, 1>, y: cuda::ArrayMut<f32, 1>) {
    let _ = (x, y);
}

#[jax_callable(state = cuda::Context::device_ordinal(cx))]
fn with_device_state(
    cx: &cuda::Context,
    ordinal: &cuda::PerDevice<usize>,
    #[dims(n)] x: cuda::Array<f32, 1>,
    #[dims(n)] w: cuda::Scratch<f32, 1>,
    #[dims(n)] y: cuda::ArrayMut<f32, 1>,
) {
    assert_eq!(**ordinal, cx.device_ordinal());
    let _ = (x, w, y);
}

#[jax_callable]
fn on_host(_x: cpu::Array<f32, 1>, y: cpu::ArrayMut<f32, 1>) {
    let _ = y;
}

fn handlers(name: &str) -> Handlers {
    let all = registrations().into_iter();
    let mut found = all.filter(|registration| registration.callable.name == name);
    found.next().expect("it is registered").handlers()
}

#[test]
fn only_jax_mode_on_a_gpu_lets_xla_capture() {
    for (name, expected) in [
        ("on_gpu", 1),
        ("uncaptured", 0),
        ("own_graph", 0),
        ("on_host", 0),
    ] {
        let handlers = handlers(name);
        let stages = [
            Some(handlers.instantiate),
            handlers.initialize,
            Some(handlers.execute),
        ];
        for handler in stages.into_iter().flatten() {
            assert_eq!(
                host_frame::metadata(handler, None),
                (0, 1, expected),
                "{name}"
            );
        }
    }
}

#[test]
fn gpus_have_an_initialize_handler() {
    assert!(handlers("on_gpu").stage(sys::stage::INITIALIZE).is_some());
    assert!(handlers("on_host").stage(sys::stage::INITIALIZE).is_none());
}

fn run(stage: i32, handler: sys::Handler, context: &Context) -> Result<(), Failure> {
    let mut frame = FrameSpec::new(stage);
    if stage != sys::stage::INSTANTIATE {
        let buffer = BufferSpec {
            dtype: crate::DataType::F32 as i32,
            dims: vec![4],
            data: ptr::without_provenance_mut(0x1000),
        };
        frame.rets = vec![BufferSpec {
            data: ptr::without_provenance_mut(0x2000),
            ..buffer.clone()
        }];
        frame.args = vec![buffer];
    }
    // SAFETY: the handler only compares addresses, and has no GPU to use them on.
    unsafe { frame.call(handler, host::table(3), context) }
}

#[test]
fn without_a_driver_calls_fail_and_say_what_to_install() {
    // SAFETY: looks for the library.
    if unsafe { cudarc::driver::sys::is_culib_present() } {
        eprintln!("skipped: this machine has a driver");
        return;
    }
    fails_without_a_driver::<on_gpu::Def>();
    fails_without_a_driver::<with_device_state::Def>();
}

fn fails_without_a_driver<D: Definition>() {
    let mut context = Context::new();
    context.stream = ptr::without_provenance_mut(0x10);
    run(sys::stage::INSTANTIATE, entry::handler::<D>, &context).expect("needs no driver");
    for (stage, handler) in [
        (sys::stage::INITIALIZE, entry::handler::<D> as sys::Handler),
        (sys::stage::EXECUTE, entry::handler::<D>),
    ] {
        let failure = run(stage, handler, &context).unwrap_err();
        assert_eq!(failure.code, Code::FailedPrecondition as i32);
        let callable = D::CALLABLE;
        let name = format!("{}.{}: ", callable.crate_name(), callable.name);
        for part in [&name, "libcuda.so.1", "install the NVIDIA driver"] {
            assert!(failure.message.contains(part), "{failure:?}");
        }
    }
}
