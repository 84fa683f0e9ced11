//! Learning, on random bodies: what is learnt must be what a capture gives, and bodies
//! that use addresses as more than addresses must be refused.

use super::super::description::{Description, Kernel, Node};
use super::super::image::Image;
use super::super::key::Pattern;
use super::super::learn::Refusal;
use super::super::patches::Patches;
use super::super::random::Random;
use super::super::synthetic;
use super::bodies::{
    Body, MISUSES, Misuse, Step, kernel, memset, moved, random_call, random_steps, word,
};
use std::collections::BTreeMap;

/// Learns from a body; the number of captures at made-up addresses, too.
fn learn(body: &Body, addresses: &[u64], sizes: &[u64]) -> (Patches, Option<usize>, usize) {
    let mut patches = Patches::default();
    assert!(patches.wants_more() && patches.find(addresses).is_none());
    let mut captures = 0;
    let capture = body.capture(addresses);
    let recipe = patches.learn(addresses, sizes, &capture, |made_up| {
        captures += 1;
        Ok(body.capture(made_up))
    });
    (patches, recipe, captures)
}

/// Writes an image into a graph as the driver would; how many nodes it has.
fn write(graph: &mut Description, image: &Image) -> usize {
    let kernels = image.kernels.iter().map(|written| {
        let Node::Kernel(kernel) = &graph.nodes[written.node] else {
            panic!("{written:?} of {:?}", graph.nodes[written.node])
        };
        let params = image.bytes(written);
        assert_eq!(params.len(), image.params(written).count());
        let kernel = Kernel {
            function: written.function,
            grid: written.grid,
            block: written.block,
            shared: written.shared,
            attributes: kernel.attributes.clone(),
            params,
            stack_words: kernel.stack_words.clone(),
        };
        (written.node, Node::Kernel(kernel))
    });
    let memsets = image.memsets.iter();
    let memsets = memsets.map(|&(node, memset)| (node, Node::Memset(memset)));
    let nodes: BTreeMap<_, _> = kernels.chain(memsets).collect();
    assert_eq!(nodes.len(), image.kernels.len() + image.memsets.len());
    let count = nodes.len();
    for (number, node) in nodes {
        graph.nodes[number] = node;
    }
    count
}

#[test]
fn sound_bodies_are_patched_to_what_a_capture_gives() {
    let mut nodes_written = 0;
    for seed in 0..4000 {
        let mut random = Random::new(seed);
        let (addresses, sizes) = random_call(&mut random);
        let body = Body::new(random_steps(&mut random, &addresses, &sizes));
        let case = format!("{seed}: {addresses:x?} {sizes:x?} {:x?}", body.steps);
        let (mut patches, recipe, captures) = learn(&body, &addresses, &sizes);
        let recipe = recipe.unwrap_or_else(|| panic!("{case}: {:?}", patches.refusal()));
        assert_eq!(captures, synthetic::NUM_SETS);

        let pattern = Pattern::of(&addresses, &sizes);
        let mut graph = body.capture(&addresses);
        for _ in 0..4 {
            let call = moved(&pattern, &mut random);
            assert_eq!(patches.find(&call), Some(recipe), "{case}");
            nodes_written += write(&mut graph, patches.apply(recipe, &call));
            assert_eq!(graph, body.capture(&call), "{case}");
            patches.verify(recipe, &call, &graph).unwrap();
        }
        // Another alignment is another pattern.
        if let Some(buffer) = addresses.iter().position(|&address| address != 0) {
            let mut call = addresses.clone();
            call[buffer] += 16;
            assert_eq!(patches.find(&call), None);
        }
    }
    assert!(nodes_written > 10_000, "{nodes_written}");
}

#[test]
fn unsound_bodies_are_refused() {
    let mut tried = 0;
    for seed in 0..6000 {
        let mut random = Random::new(seed);
        let (addresses, sizes) = random_call(&mut random);
        let pattern = Pattern::of(&addresses, &sizes);
        let mut groups = pattern.groups();
        if groups.len() < 2 {
            continue;
        }
        random.shuffle(&mut groups);
        let misuse = MISUSES[tried % MISUSES.len()];
        tried += 1;
        let mut steps = random_steps(&mut random, &addresses, &sizes);
        let at = random.below(steps.len() as u64 + 1) as usize;
        steps.insert(at, Step::Unsound(misuse));
        let body = Body {
            // The lowest of their groups, so that 4 bytes before them is no buffer.
            pair: [0, 1].map(|group: usize| {
                let mut members = groups[group].members.iter();
                members.find(|(_, offset)| *offset == 0).unwrap().0
            }),
            made_up: synthetic::sets(&pattern).unwrap().to_vec(),
            ..Body::new(steps)
        };
        let (mut patches, recipe, captures) = learn(&body, &addresses, &sizes);
        let case = format!("{seed}: {addresses:x?} {sizes:x?} {:x?}", body.steps);
        assert_eq!(recipe, None, "{case}");
        let refusal = patches.refusal().expect("a reason").clone();
        assert!(!refusal.to_string().is_empty());
        if matches!(misuse, Misuse::Other) {
            assert_eq!(captures, 0);
            assert!(matches!(
                refusal,
                Refusal::Kind {
                    kind: "host function",
                    ..
                }
            ));
        }
        // For good.
        assert!(!patches.wants_more() && patches.find(&addresses).is_none());
        patches = Patches::default();
        assert!(patches.refusal().is_none());
    }
    assert!(tried > 20 * MISUSES.len(), "{tried}");
}

/// Whether a body with one misuse of two buffers of 512 bytes is refused.
fn refusal(misuse: Misuse, addresses: [u64; 2]) -> Option<Refusal> {
    let body = Body {
        pair: [0, 1],
        ..Body::new(vec![Step::Unsound(misuse)])
    };
    learn(&body, &addresses, &[512; 2]).0.refusal().cloned()
}

#[test]
fn bodies_that_look_for_neighbours_are_refused() {
    let far = [0x7f00_0000_0000, 0x7f10_0000_0000];
    let side_by_side = |a: u64, b: u64| b == a + 512;
    assert_eq!(
        refusal(Misuse::Branch(side_by_side), far),
        Some(Refusal::Structure)
    );
    let near = |a: u64, b: u64| u32::try_from(a.abs_diff(b)).is_ok();
    assert_eq!(refusal(Misuse::Branch(near), far), Some(Refusal::Structure));
    // Real addresses are another sample.
    let is_real = |a: u64, _: u64| a < 1 << 48;
    assert_eq!(
        refusal(Misuse::Branch(is_real), far),
        Some(Refusal::Structure)
    );
}

#[test]
fn reasons_name_the_place() {
    let far = [0x7f00_0000_0000, 0x7f10_0000_0000];
    let reason = |misuse| refusal(misuse, far).unwrap().to_string();
    let text = reason(Misuse::Word(|a, b| b.wrapping_sub(a)));
    assert_eq!(
        text,
        "node 0: parameter 1 changes, and is not an address in a buffer"
    );
    assert_eq!(reason(Misuse::Rows), "node 0 is a memset of several rows");
    assert_eq!(
        reason(Misuse::MemsetElsewhere),
        "node 0 differs between captures"
    );
}

#[test]
fn captures_that_fail_are_not_tried_again() {
    let body = Body::new(vec![Step::Memset(0, 0)]);
    let addresses = [0x7f00_0000_0000];
    let mut patches = Patches::default();
    let capture = body.capture(&addresses);
    let mut calls = 0;
    let recipe = patches.learn(&addresses, &[4], &capture, |_| {
        calls += 1;
        Err("CUDA_ERROR_INVALID_VALUE".to_owned())
    });
    assert_eq!((recipe, calls, patches.wants_more()), (None, 1, false));
    let text = patches.refusal().unwrap().to_string();
    assert!(text.contains("CUDA_ERROR_INVALID_VALUE"), "{text}");
}

#[test]
fn a_recipe_that_proves_wrong_is_dropped() {
    let body = Body::new(vec![Step::Memset(0, 0)]);
    let addresses = [0x7f00_0000_0000];
    let (mut patches, recipe, _) = learn(&body, &addresses, &[4]);
    let recipe = recipe.unwrap();
    let other = [0x7f00_0000_0200];
    let wrong = body.capture(&addresses);
    let refusal = patches.verify(recipe, &other, &wrong).unwrap_err();
    assert!(
        matches!(&refusal, Refusal::Prediction { node: 0, .. }),
        "{refusal}"
    );
    assert_eq!(patches.find(&other), None);
    assert!(!patches.wants_more());
}

#[test]
fn what_the_driver_refuses_is_not_patched_again() {
    let body = Body::new(vec![Step::Memset(0, 0)]);
    let addresses = [0x7f00_0000_0000];
    let (mut patches, recipe, _) = learn(&body, &addresses, &[4]);
    assert_eq!(patches.find(&addresses), recipe);
    patches.refuse(Refusal::Write("CUDA_ERROR_INVALID_VALUE".to_owned()));
    assert_eq!(patches.find(&addresses), None);
    assert!(!patches.wants_more());
    let text = patches.refusal().unwrap().to_string();
    assert!(text.contains("CUDA_ERROR_INVALID_VALUE"), "{text}");

    // What is there if learning panics.
    let none = Patches::none();
    assert!(none.find(&addresses).is_none() && !none.wants_more());
}

#[test]
fn patterns_are_learnt_apart_and_not_without_end() {
    let body = Body::new(vec![Step::IfSame(0, 1), Step::Memset(1, 2)]);
    let base = 0x7f00_0000_0000;
    let mut patches = Patches::default();
    let calls: Vec<_> = (0..4).map(|i| [base, base + 128 * i]).collect();
    for (i, call) in calls.iter().enumerate() {
        assert!(patches.wants_more() && patches.find(call).is_none());
        let capture = body.capture(call);
        let recipe = patches.learn(call, &[256, 256], &capture, |set| Ok(body.capture(set)));
        assert_eq!(recipe, Some(i));
    }
    assert!(!patches.wants_more());
    for (i, call) in calls.iter().enumerate() {
        let moved = call.map(|address| address + 0x10000);
        assert_eq!(patches.find(&moved), Some(i));
        patches.verify(i, &moved, &body.capture(&moved)).unwrap();
    }
}

#[test]
fn our_own_copies_are_left_alone() {
    let capture = |seen: &[u64], bytes| {
        let nodes = vec![
            Node::Copy { bytes },
            memset(seen[0]),
            Node::Copy { bytes: 8 },
        ];
        Description::new(nodes, vec![(0, 1), (1, 2)])
    };
    let addresses = [0x7f00_0000_0000];
    let real = capture(&addresses, 64);
    let mut patches = Patches::default();
    let recipe = patches.learn(&addresses, &[4], &real, |set| Ok(capture(set, 64)));
    let image = patches.apply(recipe.unwrap(), &[512]);
    assert!(image.kernels.is_empty());
    let Node::Memset(expected) = memset(512) else {
        unreachable!()
    };
    assert_eq!(image.memsets, [(1, expected)]);

    let mut patches = Patches::default();
    let mut bytes = 64;
    let recipe = patches.learn(&addresses, &[4], &real, |set| {
        bytes += 1;
        Ok(capture(set, bytes))
    });
    assert_eq!((recipe, patches.refusal()), (None, Some(&Refusal::Node(0))));
}

/// cuBLAS gives some kernels the address of a variable of its own, which they do not use.
#[test]
fn what_points_into_a_stack_says_nothing() {
    let addresses = [0x7f00_0000_0000];
    let learn = |stack_words: fn(u64) -> Vec<(usize, usize)>| {
        let mut calls = 0;
        let mut capture = move |seen: &[u64]| {
            calls += 1;
            let pair = [word(3), word(0x7ffd_0000_0000 + 16 * calls)].concat();
            let kernel = Kernel {
                stack_words: stack_words(calls),
                ..kernel(vec![word(seen[0]), pair])
            };
            Description::new(vec![Node::Kernel(kernel)], Vec::new())
        };
        let mut patches = Patches::default();
        let real = capture(&addresses);
        let recipe = patches.learn(&addresses, &[4], &real, |set| Ok(capture(set)));
        (patches, recipe, capture)
    };

    let (mut patches, recipe, mut capture) = learn(|_| vec![(1, 8)]);
    let (recipe, moved) = (recipe.unwrap(), [0x7f00_0000_0200]);
    let image = patches.apply(recipe, &moved);
    let params = image.bytes(&image.kernels[0]);
    assert_eq!(*params[0], *word(moved[0]));
    assert_eq!(params[1][..8], *word(3));
    // Of the first capture at made-up addresses, not nothing: a null pointer may say something.
    assert_eq!(params[1][8..], *word(0x7ffd_0000_0020));
    patches.verify(recipe, &moved, &capture(&moved)).unwrap();

    let refused = Some(&Refusal::Param { node: 0, param: 1 });
    for stack_words in [
        |_| vec![],
        |_| vec![(1, 0)],
        |calls| if calls % 2 == 0 { vec![(1, 8)] } else { vec![] },
    ] as [fn(u64) -> _; 3]
    {
        let (patches, recipe, _) = learn(stack_words);
        assert_eq!((recipe, patches.refusal()), (None, refused));
    }
}
