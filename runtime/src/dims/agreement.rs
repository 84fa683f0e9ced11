//! The cases of `tests/dims.json`, which the Python side evaluates too.

use super::fuzz::{Case, with_output};
use super::*;
use serde_json::Value;

const CASES: &str = include_str!("../../../tests/dims.json");

/// An expression as in a manifest. It is never freed.
fn dim(rule: &Value) -> Dim {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    if let Some(value) = rule.as_i64() {
        Dim::Const(value)
    } else if let Some(name) = rule.get("dim") {
        Dim::Name(usize::from(text(name) == "m"))
    } else if let Some(axis) = rule.get("axis") {
        Dim::Axis(2, axis[1].as_u64().unwrap() as usize)
    } else if let Some(name) = rule.get("scalar") {
        Dim::Scalar(usize::from(text(name) == "l"))
    } else {
        let ops = super::fuzz::OPS;
        let op = ops.into_iter().find(|op| op.name() == text(&rule["op"]));
        let [a, b] = [0, 1].map(|i| &*Box::leak(Box::new(dim(&rule["args"][i]))));
        Dim::Op(op.unwrap(), a, b)
    }
}

#[test]
fn values_are_those_that_python_has() {
    let cases: Vec<Value> = serde_json::from_str(CASES).unwrap();
    assert!(cases.len() >= 400);
    for case in &cases {
        let shape: Vec<i64> = serde_json::from_value(case["shape"].clone()).unwrap();
        let number = |name: &str| case[name].as_i64().unwrap();
        let shapes = Case::new(shape, [number("k"), number("l")]);
        let got = with_output(dim(&case["rule"]), |callable| infer(callable, &shapes));
        assert_eq!(
            got.ok().map(|shapes| shapes[0][0]),
            case["value"].as_i64(),
            "{case}"
        );
    }
}
