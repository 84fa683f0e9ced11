//! Targets on a platform that they have no function for.

use super::*;
#[cfg(feature = "_cuda")]
use crate::cuda;
use crate::registry::library;
use crate::signature::Platform;
use serde_json::Value;

#[jax_callable]
fn only_here(_x: cpu::Array<f32, 1>, _y: cpu::ArrayMut<f32, 1>) {}

#[cfg(feature = "_cuda")]
#[jax_callable]
fn only_there(_x: cuda::Array<f32, 1>, _y: cuda::ArrayMut<f32, 1>) {}

#[cfg(feature = "_cuda")]
#[jax_callable(name = "everywhere")]
fn here(_x: cpu::Array<f32, 1>, _y: cpu::ArrayMut<f32, 1>) {}

#[cfg(feature = "_cuda")]
#[jax_callable(name = "everywhere")]
fn there(_x: cuda::Array<f32, 1>, _y: cuda::ArrayMut<f32, 1>) {}

fn target(name: &str) -> Value {
    let manifest: Value = serde_json::from_slice(library().manifest.to_bytes()).unwrap();
    let targets = manifest["targets"].as_array().unwrap();
    let mut found = targets.iter().filter(|target| target["name"] == name);
    found.next().expect("it is registered").clone()
}

fn run(target: &Value, stage: i32) -> Result<(), Failure> {
    let index = target["absent"]["index"].as_u64().unwrap();
    let handlers = library().handlers[index as usize];
    assert!(handlers.initialize.is_none());
    let mut frame = FrameSpec::new(stage);
    // SAFETY: there are no buffers.
    unsafe {
        frame.call(
            handlers.stage(stage).unwrap(),
            host::table(3),
            &Context::new(),
        )
    }
}

fn check(name: &str, platform: Platform, parts: &[&str]) {
    let target = target(name);
    assert_eq!(target["absent"]["platform"], platform.name());
    let reason = target["absent"]["reason"].as_str().unwrap();
    run(&target, sys::stage::INSTANTIATE).expect("the call may never be made");
    let failure = run(&target, sys::stage::EXECUTE).unwrap_err();
    assert_eq!(failure.code, Code::FailedPrecondition as i32);
    let krate = env!("CARGO_CRATE_NAME");
    assert_eq!(failure.message, format!("{krate}.{name}: {reason}"));
    let named = format!("name = \"{name}\"");
    for part in [&["jax.device_put", &named], parts].concat() {
        assert!(reason.contains(part), "{reason}");
    }
}

#[test]
fn a_function_for_the_cpu_says_so_on_cuda() {
    let feature = "without the feature `cuda`";
    let expected = match cfg!(feature = "_cuda") {
        true => "only one for the CPU",
        false => feature,
    };
    check("only_here", Platform::Cuda, &[expected, "cuda::Array"]);
}

#[cfg(feature = "_cuda")]
#[test]
fn a_function_for_cuda_says_so_on_the_cpu() {
    check(
        "only_there",
        Platform::Cpu,
        &["only one for CUDA", "cpu::Array"],
    );
}

#[cfg(feature = "_cuda")]
#[test]
fn a_target_that_is_everywhere_is_absent_nowhere() {
    let target = target("everywhere");
    assert_eq!(target["absent"], Value::Null);
    assert_eq!(target["handlers"].as_array().unwrap().len(), 2);
}
