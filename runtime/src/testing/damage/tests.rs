//! Damaged calls of many targets.

use super::*;
use crate::ffi::host::MINOR_VERSIONS;
use crate::random::Random;
use crate::testing::Target;
use crate::testing::tests::targets;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// `DAMAGES_LONG=1` has every call under every version of the API, and more of the random ones.
fn is_long() -> bool {
    std::env::var_os("DAMAGES_LONG").is_some()
}

#[test]
fn every_field_of_every_call_damaged_in_turn() {
    let mut total = DamageReport::default();
    for (i, (name, call)) in targets::calls().into_iter().enumerate() {
        let versions = MINOR_VERSIONS.into_iter().cycle().skip(i);
        for minor in versions.take(if is_long() { 5 } else { 1 }) {
            let call = call.clone().api_version(minor);
            let report = call.check_damages();
            let report = report.unwrap_or_else(|error| panic!("{name}, API 0.{minor}: {error}"));
            assert!(
                report.refused > 100 && report.right > 10,
                "{name}: {report:?}"
            );
            total.refused += report.refused;
            total.right += report.right;
        }
    }
    let DamageReport { refused, right } = total;
    eprintln!("damaged in one field: {refused} refused, {right} right");
}

/// Two and three fields at once. What is right is not asked: memory stays whole, as every run checks,
/// and errors have the target's name.
#[test]
fn fields_damaged_together() {
    let (mut random, mut seen) = (Random::new(1), [0; 2]);
    for (name, call) in targets::calls() {
        let damages = call.damages();
        for _ in 0..if is_long() { 10_000 } else { 200 } {
            let chosen: Vec<_> = (0..2 + random.below(2))
                .map(|_| damages[random.below(damages.len())].clone())
                .collect();
            let run = AssertUnwindSafe(|| call.clone().damaged(&chosen).run());
            let got = catch_unwind(run).unwrap_or_else(|_| panic!("{name}: {chosen:?}"));
            seen[usize::from(got.is_ok())] += 1;
            if let Err(error) = got {
                let path = format!("{}: ", call.target.path());
                assert!(
                    error.to_string().starts_with(&path),
                    "{name}, {chosen:?}: {error}"
                );
            }
        }
    }
    let [refused, ran] = seen;
    assert!(refused > 100 && ran > 100, "{seen:?}");
    eprintln!("damaged in two or three fields: {refused} refused, {ran} ran within their memory");
}

#[test]
fn damages_say_what_they_are() {
    let call = Target::find("lookup").unwrap().call();
    let damages = call.input("table", [1, 2], &[1_i8, 2]).damages();
    let texts: Vec<_> = damages.iter().map(Damage::to_string).collect();
    for text in [
        "EXECUTE, `table`: Buffer(Args, 0, Dim(1, -1))",
        "INSTANTIATE: FrameSize(0)",
        "both stages: Table(Short)",
    ] {
        assert!(texts.iter().any(|each| each == text), "{text}");
    }
    let of_table = damages.iter().filter(|d| d.parameter() == Some("table"));
    assert!(of_table.count() > 50);
}
