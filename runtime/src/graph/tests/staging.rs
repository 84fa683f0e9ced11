//! Staging plans, also run on plain memory: they must not change what a call returns.

use super::super::key::ALIGNMENT;
use super::super::random::Random;
use super::super::staging::{Array, SlotCopy, Staging};
use crate::error::Code;

fn input(operand: usize, size: u64, stage_in: bool) -> Array {
    Array {
        operand: Some(operand),
        result: None,
        size,
        stage_in,
        stage_out: false,
        is_scratch: false,
    }
}

fn output(result: usize, size: u64, stage_out: bool) -> Array {
    Array {
        operand: None,
        result: Some(result),
        size,
        stage_in: false,
        stage_out,
        is_scratch: false,
    }
}

fn in_out([operand, result]: [usize; 2], size: u64, [stage_in, stage_out]: [bool; 2]) -> Array {
    Array {
        operand: Some(operand),
        result: Some(result),
        size,
        stage_in,
        stage_out,
        is_scratch: false,
    }
}

#[test]
fn scratch_has_a_slot_and_no_copy() {
    let scratch = Array {
        is_scratch: true,
        ..output(1, 512, true)
    };
    let staging = Staging::new(&[output(0, 256, true), scratch]).unwrap();
    assert_eq!(staging.bytes, 256 + 512);
    assert_eq!(
        (staging.before.len(), &staging.after[..]),
        (0, &[copy(0, 0, 256)][..])
    );
    assert_eq!(key(&staging, &[0x100, 0x200]), [0; 0]);
    assert_eq!(staging.seen(&[], 0x1000, 2), [0x1000, 0x1100]);
}

fn copy(buffer: usize, offset: u64, bytes: u64) -> SlotCopy {
    SlotCopy {
        buffer,
        offset,
        bytes,
    }
}

fn key(staging: &Staging, addresses: &[u64]) -> Vec<u64> {
    staging.key(addresses).collect()
}

#[test]
fn all_staged() {
    // f(x, y in-out, e empty) -> (y, z)
    let staging = Staging::new(&[
        input(0, 100, true),
        in_out([1, 3], 512, [true; 2]),
        input(2, 0, true),
        output(4, 257, true),
    ])
    .unwrap();
    assert_eq!(staging.bytes, 256 + 512 + 512);
    assert_eq!(staging.before, [copy(0, 0, 100), copy(1, 256, 512)]);
    assert_eq!(staging.after, [copy(3, 256, 512), copy(4, 768, 257)]);
    assert_eq!(staging.moves, []);
    let key = key(&staging, &[10, 11, 12, 13, 14]);
    assert_eq!(key, [12]);
    assert_eq!(staging.key_sizes(), [0]);
    let seen = staging.seen(&key, 0x1000, 5);
    assert_eq!(seen, [0x1000, 0x1100, 12, 0x1100, 0x1300]);
}

#[test]
fn none_staged() {
    let staging = Staging::new(&[
        input(0, 100, false),
        in_out([1, 2], 512, [false; 2]),
        output(3, 64, false),
    ])
    .unwrap();
    assert_eq!((staging.bytes, &*staging.moves), (0, &[(1, 2, 512)][..]));
    assert!(staging.before.is_empty() && staging.after.is_empty());
    // The in-out's operand is not seen, so it is no part of the key.
    let key = key(&staging, &[10, 11, 12, 13]);
    assert_eq!(key, [10, 12, 13]);
    assert_eq!(staging.key_sizes(), [100, 512, 64]);
    assert_eq!(staging.seen(&key, 0, 4), [10, 0, 12, 13]);
}

#[test]
fn an_in_out_is_staged_both_ways_or_not_at_all() {
    for lists in [[false, true], [true, false]] {
        let staging = Staging::new(&[in_out([0, 1], 64, lists)]).unwrap();
        assert_eq!(staging.moves, [(0, 1, 64)]);
        assert_eq!(key(&staging, &[10, 11]), [11]);
    }
}

#[test]
fn sizes_that_no_memory_has_are_refused() {
    for sizes in [[u64::MAX, 0], [i64::MAX as u64, 1], [1 << 62, 1 << 62]] {
        let arrays = [input(0, sizes[0], true), input(1, sizes[1], true)];
        let error = Staging::new(&arrays).unwrap_err();
        assert_eq!(error.code(), Code::ResourceExhausted);
        assert!(error.to_string().contains("staging"), "{error}");
    }
}

/// What a body does to the arrays that it sees: reads inputs, writes outputs, adds to
/// in-outs.
fn body(arrays: &[Array], memory: &mut [u64], seen: &[u64]) {
    let at = |array: &Array| {
        let buffer = array.result.or(array.operand).unwrap();
        seen[buffer] as usize
    };
    let read = arrays.iter().filter(|array| array.operand.is_some());
    let sum: u64 = read
        .map(|array| {
            let start = at(array);
            let values = &memory[start..start + array.size as usize];
            (1..).zip(values).map(|(i, v)| i * v).sum::<u64>()
        })
        .sum();
    for (i, array) in arrays.iter().enumerate() {
        if array.result.is_some() {
            let start = at(array);
            for (k, value) in memory[start..start + array.size as usize]
                .iter_mut()
                .enumerate()
            {
                let old = if array.operand.is_some() { *value } else { 0 };
                *value = old + sum + (100 * i + k) as u64;
            }
        }
    }
}

/// Addresses are positions in `memory`, of which an array takes `size`.
fn run(staging: &Staging, arrays: &[Array], memory: &mut [u64], addresses: &[u64], slots: u64) {
    let mut copy = |from: u64, to: u64, bytes: u64| {
        let from = from as usize;
        memory.copy_within(from..from + bytes as usize, to as usize);
    };
    for &(operand, result, bytes) in &staging.moves {
        if addresses[operand] != addresses[result] {
            copy(addresses[operand], addresses[result], bytes);
        }
    }
    for step in &staging.before {
        copy(addresses[step.buffer], slots + step.offset, step.bytes);
    }
    let key = key(staging, addresses);
    body(arrays, memory, &staging.seen(&key, slots, addresses.len()));
    for step in &staging.after {
        let from = (slots + step.offset) as usize;
        let to = addresses[step.buffer] as usize;
        memory.copy_within(from..from + step.bytes as usize, to);
    }
}

#[test]
fn no_plan_changes_what_a_call_returns() {
    for seed in 0..2000 {
        let mut random = Random::new(seed);
        let mut flip = || random.next().is_multiple_of(2);
        let roles: Vec<_> = (0..5).map(|_| (flip(), flip())).collect();
        let lists: Vec<_> = (0..5).map(|_| [flip(), flip()]).collect();
        let num_operands = roles.iter().filter(|(input, both)| *input || *both).count();
        let (mut operands, mut results) = (0..num_operands, num_operands..);
        let arrays: Vec<Array> = (0..5)
            .map(|i| {
                let size = [0, 3, 300, 256][random.below(4) as usize];
                match roles[i] {
                    (_, true) => in_out(
                        [operands.next().unwrap(), results.next().unwrap()],
                        size,
                        lists[i],
                    ),
                    (true, false) => input(operands.next().unwrap(), size, lists[i][0]),
                    (false, false) => output(results.next().unwrap(), size, lists[i][1]),
                }
            })
            .collect();
        let num_buffers = results.next().unwrap();

        let mut addresses = vec![0; num_buffers];
        for (i, array) in arrays.iter().enumerate() {
            let own = 1024 * i as u64;
            if let Some(operand) = array.operand {
                addresses[operand] = own;
            }
            if let Some(result) = array.result {
                // XLA may alias an in-out or not.
                addresses[result] = own + 512 * random.below(2);
            }
        }
        // One array for two inputs.
        if let [one, two, ..] = *arrays
            && one.result.is_none()
            && two.result.is_none()
            && one.size == two.size
        {
            addresses[1] = addresses[0];
        }

        let direct: Vec<_> = arrays
            .iter()
            .map(|array| Array {
                stage_in: false,
                stage_out: false,
                ..*array
            })
            .collect();
        let plans = [Staging::new(&arrays), Staging::new(&direct)].map(Result::unwrap);
        assert_eq!(plans[1].bytes, 0);
        for copies in [&plans[0].before, &plans[0].after] {
            assert!(copies.iter().all(|copy| copy.offset % ALIGNMENT == 0));
        }
        let outcomes = plans.map(|plan| {
            let slots = 8192;
            let mut memory: Vec<u64> = (0..slots + plan.bytes).map(|i| i % 251).collect();
            // Stale values in staging memory must not be seen: the second call counts.
            for _ in 0..2 {
                run(&plan, &arrays, &mut memory, &addresses, slots);
            }
            memory.truncate(slots as usize);
            memory
        });
        assert_eq!(outcomes[0], outcomes[1], "seed {seed}: {arrays:?}");
    }
}
