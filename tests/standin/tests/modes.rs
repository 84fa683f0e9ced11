//! Every graph mode gives the same numbers, wherever the arrays are.

mod common;

use common::mix::{self, Mix};
use common::{Gpu, MODES, OWN, graphs};

#[test]
fn all_modes_give_the_numbers_at_addresses_that_repeat_and_move() {
    for seed in 0..6 {
        for mode in MODES {
            let gpu = Gpu::begin(seed);
            let streams = [0, 1, 0].map(|device| gpu.stream(device));
            let site = mix::site(mode).unwrap();
            for stream in &streams {
                let mut sets: Vec<_> = (0..5)
                    .map(|i| Mix::new(stream, seed + i, i % 2 == 0))
                    .collect();
                for call in 0..20 {
                    let mix = &mut sets[[0, 0, 1, 2, 0, 1, 3, 4, 4, 2][call % 10]];
                    mix.set(seed + call as u64);
                    mix.run(&site, stream).unwrap();
                    stream.wait();
                    mix.check(&format!("{mode}, seed {seed}, call {call}"));
                }
            }
        }
    }
}
