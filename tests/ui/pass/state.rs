//! State: every form of a constructor, and types under other names.
#![deny(warnings)]
#![forbid(unsafe_code)]
use jax_callable::prelude::*;
use std::collections::HashMap;
use std::sync::Mutex;

#[derive(Default)]
struct Plan {
    size: usize,
    name: String,
}

impl Plan {
    fn new(size: u32, name: &str) -> Plan {
        let (size, name) = (size as usize, name.to_owned());
        Plan { size, name }
    }

    fn read(text: &str) -> std::result::Result<Plan, std::num::ParseIntError> {
        let (size, name) = (text.parse()?, text.to_owned());
        Ok(Plan { size, name })
    }

    fn scaled(self, by: usize) -> Plan {
        let size = self.size * by;
        Plan { size, ..self }
    }
}

#[jax_callable(state = Plan::new(k, name))]
fn value(k: u32, name: &str, plan: &State<Plan>, mut y: cpu::ArrayMut<f32, 1>) {
    let _ = (k, name, plan.name.len());
    y.fill(plan.size as f32);
}

#[jax_callable(state = Plan::read(text))]
fn result(text: &str, mut y: cpu::ArrayMut<f32, 1>, plan: &State<Plan>) {
    let _ = text;
    y.fill(plan.size as f32);
}

#[jax_callable(state = Plan::read(text)?.scaled(weights.len()))]
fn chain<'a>(text: &'a str, weights: &'a [f32], plan: &'a State<Plan>, y: cpu::ArrayMut<f32, 1>) {
    let _ = (text, weights, plan, y);
}

#[jax_callable(state = Plan::default())]
fn no_scalars(plan: &State<Plan>, y: cpu::ArrayMut<f32, 1>) {
    let _ = (plan, y);
}

#[jax_callable(state = Mutex::new(HashMap::new()))]
fn inferred(cache: &State<Mutex<HashMap<String, f64>>>, y: cpu::ArrayMut<f32, 1>) {
    let _ = (cache.lock(), y);
}

// The closure's own `y` is not the output.
#[jax_callable(state = Vec::from_iter((0..k).map(|y| y + r#type)))]
fn closure(k: u8, r#type: u8, table: &State<Vec<u8>>, y: cpu::ArrayMut<f32, 1>) {
    let _ = (k, r#type, table, y);
}

#[jax_callable(state = String::from(format!("{k} {}", l)))]
fn formatted(k: u8, l: Count, text: &State<String>, y: cpu::ArrayMut<f32, 1>) {
    let _ = (k, l, text, y);
}

type Count = u32;
type Shared = State<Plan>;
type Reference<'a> = &'a State<Plan>;
type Output<'a> = cpu::ArrayMut<'a, f32, 1>;

#[jax_callable(state = Plan::new(k, "alias"))]
fn alias(k: Count, plan: &Shared, x: cpu::Array<f32, 1>, y: Output) {
    let _ = (k, plan, x, y);
}

#[jax_callable(state = Plan::new(k, "reference"))]
fn reference(k: Count, x: cpu::Array<f32, 1>, y: Output, plan: Reference) {
    let _ = (k, plan, x, y);
}

// A state may be a result itself.
#[jax_callable(state = Plan::read("x"))]
fn kept_result(
    plan: &State<std::result::Result<Plan, std::num::ParseIntError>>,
    y: cpu::ArrayMut<f32, 1>,
) {
    let _ = (plan.is_ok(), y);
}

// What outlives calls has lifetimes of its own.
#[jax_callable(state = name_and_first())]
fn lifetimes<'a>(
    both: &'a State<(&'static str, Box<dyn for<'b> Fn(&'b [f32; 1]) -> &'b f32 + Send + Sync>)>,
    mut y: cpu::ArrayMut<f32, 1>,
) {
    y.fill((both.1)(&[both.0.len() as f32]).to_owned());
}

type First = Box<dyn for<'b> Fn(&'b [f32; 1]) -> &'b f32 + Send + Sync>;

fn name_and_first() -> (&'static str, First) {
    ("four", Box::new(|x| &x[0]))
}

fn main() {
    use jax_callable::testing::Target;

    let call = |name| Target::find(name).unwrap().call().output_dims("y", [2]);
    let outcome = call("value").value("k", 3_u32).value("name", "a").run().unwrap();
    assert_eq!(outcome.get::<f32>("y"), [3.0, 3.0]);
    let error = call("result").value("text", "z").run().err().unwrap();
    assert!(error.to_string().ends_with("cannot build its state: invalid digit found in string"));
    call("alias").value("k", 3_u32).input("x", [1], &[1.0_f32]).run().unwrap();
    call("reference").value("k", 3_u32).input("x", [1], &[1.0_f32]).run().unwrap();
    call("kept_result").run().unwrap();
    assert_eq!(call("lifetimes").run().unwrap().get::<f32>("y"), [4.0, 4.0]);
}
