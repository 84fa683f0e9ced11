//! Calls on a GPU with each field of their frames damaged in turn, in every graph mode.

mod common;

use common::mix::{Mix, N, SCALE};
use common::{Gpu, MODES};
use jax_callable::testing::{Call, Target};

fn call(mode: &str) -> Call {
    let target = Target::find_cuda(&format!("mix_{mode}")).unwrap();
    let call = target.call().value("s", SCALE);
    let arrays = ["a", "b", "c", "d"].into_iter();
    arrays.fold(call, |call, name| call.input_shape(name, [N]))
}

#[test]
fn damaged_calls_are_refused_or_right() {
    let [mut refused, mut right] = [0, 0];
    for mode in MODES {
        let (gpu, call) = (Gpu::begin(0), call(mode));
        let stream = gpu.stream(0);
        let start = format!(
            "{}: ",
            Target::find_cuda(&format!("mix_{mode}")).unwrap().path()
        );
        for (seed, damage) in call.damages().into_iter().enumerate() {
            // In-outs in one buffer and in two.
            let mix = Mix::new(&stream, seed as u64, seed % 2 == 0);
            let site = call
                .clone()
                .damaged(std::slice::from_ref(&damage))
                .instantiate();
            let outcome = site.and_then(|site| {
                let outcome = mix.run(&site, &stream);
                stream.wait();
                outcome
            });
            match outcome {
                Err(error) => {
                    assert!(error.to_string().starts_with(&start), "{damage}: {error}");
                    refused += 1;
                }
                Ok(()) => {
                    // Nothing is done in a stage that nobody knows.
                    let is_unknown = damage.to_string().starts_with("EXECUTE: Stage(");
                    assert_eq!(mix.is(), !is_unknown, "{mode}, {damage}");
                    right += 1;
                }
            }
            assert_eq!(gpu.driver.misuses(), "", "{mode}, {damage}");
        }
    }
    assert!(refused > 1000 && right > 100, "{refused} {right}");
    eprintln!("damaged calls on a GPU: {refused} refused, {right} right");
}
