#![allow(unused_variables)]
use jax_callable::prelude::*;

use std::cell::Cell;

#[jax_callable(state = Cell::new(k))]
fn f(k: i32, count: &State<Cell<i32>>, y: cpu::ArrayMut<f32, 1>) {}

fn main() {}
