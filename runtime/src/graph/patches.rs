//! What is known about patching the graphs of one call site on one device.

use super::description::{Description, Node};
use super::image::Image;
use super::key::Pattern;
use super::learn::{Recipe, Refusal, Sample};
use super::synthetic::{self, NUM_SETS};

/// How many patterns of a site are learnt: a few, such as `f(x, x)` beside `f(x, y)`.
const MAX_PATTERNS: usize = 4;

/// The recipes of a site. One refusal is for good: then its graphs are captured again and
/// updated whenever buffers move.
///
/// A recipe is for an executable that was made or updated from a capture which
/// [`verify`](Self::verify) accepted, or that the same recipe patched last: others may
/// have other values in the nodes that the recipe does not write.
///
/// Staging memory is a constant to a recipe: when it is allocated anew, start anew.
#[derive(Debug, Default)]
pub(crate) struct Patches {
    learnt: Vec<(Pattern, Recipe)>,
    refusal: Option<Refusal>,
}

impl Patches {
    /// Those of a site whose own are being learnt. Should that panic, nothing is patched: the
    /// numbers that executables have are of the others.
    pub(crate) fn none() -> Patches {
        Patches {
            learnt: Vec::new(),
            refusal: Some(Refusal::Capture("it did not end".into())),
        }
    }

    /// The recipe for a call with these addresses.
    pub(crate) fn find(&self, addresses: &[u64]) -> Option<usize> {
        let mut learnt = self.learnt.iter();
        learnt.position(|(pattern, _)| pattern.is_of(addresses))
    }

    /// Whether to learn from a call for which there is no recipe.
    pub(crate) fn wants_more(&self) -> bool {
        self.refusal.is_none() && self.learnt.len() < MAX_PATTERNS
    }

    /// Learns from a real call, whose `capture` the driver has, and from captures of the
    /// body at made-up addresses, for which `capture_at` is called. The number of the
    /// recipe, which has accepted `capture`; none if the graph cannot be patched.
    pub(crate) fn learn(
        &mut self,
        addresses: &[u64],
        sizes: &[u64],
        capture: &Description,
        capture_at: impl FnMut(&[u64]) -> Result<Description, String>,
    ) -> Option<usize> {
        let pattern = Pattern::of(addresses, sizes);
        match learn(&pattern, capture, capture_at) {
            Ok(recipe) => {
                self.learnt.push((pattern, recipe));
                Some(self.learnt.len() - 1)
            }
            Err(refusal) => {
                self.refuse(refusal);
                None
            }
        }
    }

    /// What to write for a call that the recipe is for.
    pub(crate) fn apply(&mut self, recipe: usize, addresses: &[u64]) -> &Image {
        self.learnt[recipe].1.apply(addresses)
    }

    /// All that a graph has which was just verified.
    pub(crate) fn verified(&self, recipe: usize) -> Image {
        self.learnt[recipe].1.verified()
    }

    /// Compares a real capture with what a recipe makes of it. If they differ the body
    /// does something that its captures did not show, and nothing is patched any more.
    pub(crate) fn verify(
        &mut self,
        recipe: usize,
        addresses: &[u64],
        capture: &Description,
    ) -> Result<(), Refusal> {
        let result = self.learnt[recipe].1.verify(addresses, capture);
        if let Err(refusal) = &result {
            self.refuse(refusal.clone());
        }
        result
    }

    /// Why nothing is patched.
    #[cfg(test)]
    pub(crate) fn refusal(&self) -> Option<&Refusal> {
        self.refusal.as_ref()
    }

    /// Patches nothing any more.
    pub(crate) fn refuse(&mut self, refusal: Refusal) {
        self.learnt.clear();
        self.refusal = Some(refusal);
    }
}

fn learn(
    pattern: &Pattern,
    capture: &Description,
    mut capture_at: impl FnMut(&[u64]) -> Result<Description, String>,
) -> Result<Recipe, Refusal> {
    // What is refused anyway needs no captures.
    for (node, captured) in capture.nodes.iter().enumerate() {
        if let Node::Other(kind) = captured {
            return Err(Refusal::Kind { node, kind });
        }
    }
    let sets = synthetic::sets(pattern).ok_or(Refusal::Addresses)?;
    let mut graphs = Vec::with_capacity(NUM_SETS);
    for set in &sets {
        graphs.push(capture_at(set).map_err(Refusal::Capture)?);
    }
    let samples: Vec<Sample<'_>> = sets
        .iter()
        .zip(&graphs)
        .map(|(addresses, graph)| Sample { addresses, graph })
        .chain([Sample {
            addresses: pattern.addresses(),
            graph: capture,
        }])
        .collect();
    Recipe::learn(pattern, [samples[0], samples[1]], &samples[2..])
}
