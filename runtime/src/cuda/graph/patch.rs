//! Executables that get the addresses of a call written into them, without a capture.

use super::captured::{Captured, OneCall};
use super::describe::{Nodes, are_alike, describe};
use super::raw::Graph;
use super::site::{Body, SiteGraphs};
use super::staged::CopyNode;
use crate::error::{Error, Result};
use crate::graph::learn::Refusal;
use crate::graph::patches::Patches;
use std::sync::OnceLock;

/// Whether the environment has `JAX_CALLABLE_VERIFY_PATCH=1`.
fn verifies_patches() -> bool {
    static VERIFIES: OnceLock<bool> = OnceLock::new();
    *VERIFIES.get_or_init(|| {
        std::env::var_os("JAX_CALLABLE_VERIFY_PATCH").is_some_and(|value| value == "1")
    })
}

impl SiteGraphs {
    /// Writes the addresses of a call into an executable, if it is known where. False if not, or
    /// if the driver refuses them: then all of the executable is to be updated.
    pub(super) fn patch(
        &mut self,
        captured: &Captured,
        call: &OneCall<'_>,
        body: &mut Body<'_>,
    ) -> Result<bool> {
        let Some(recipe) = self.patches.find(call.key) else {
            return Ok(false);
        };
        let Some((own, nodes)) = &captured.recipe else {
            return Ok(false);
        };
        if *own != recipe {
            return Ok(false);
        }
        let image = self.patches.apply(recipe, call.key);
        // SAFETY: the executable's graph is alive, and its recipe was learnt from graphs that
        // differ in addresses only.
        let written = unsafe { nodes.write(&captured.executable, call.context, image) };
        if let Err(error) = written {
            self.patches.refuse(Refusal::Write(error.to_string()));
            return Ok(false);
        }
        self.target.counters.patches.add(1);
        if verifies_patches() {
            self.verify(recipe, call, body)?;
        }
        Ok(true)
    }

    /// Writes all that a graph has into the executable that was updated from it. Of nodes that could
    /// be one another, the driver has paired what it liked: from here on each has what its number
    /// says, also those that hold no address.
    pub(super) fn write_all(
        &mut self,
        captured: &mut Captured,
        graph: &Graph,
        recipe: usize,
        nodes: Nodes,
        call: &OneCall<'_>,
    ) -> Result<Option<(usize, Nodes)>> {
        let image = self.patches.verified(recipe);
        // SAFETY: the executable's graph is alive, and the recipe was verified against `graph`,
        // which is like it.
        let written = unsafe { nodes.write(&captured.executable, call.context, &image) };
        let Err(error) = written else {
            return Ok(Some((recipe, nodes)));
        };
        self.patches.refuse(Refusal::Write(error.to_string()));
        match captured.executable.update(graph)? {
            true => Ok(None),
            false => Err(error),
        }
    }

    /// Captures a call that was patched, and compares.
    #[cold]
    fn verify(&mut self, recipe: usize, call: &OneCall<'_>, body: &mut Body<'_>) -> Result<()> {
        let Some((graph, copies)) = self.capture(call, call.key, body)? else {
            return Err(Error::internal("a patched graph has become too large"));
        };
        let description = describe(&graph, copies.iter().map(CopyNode::describe))?;
        let verified = self.patches.verify(recipe, call.key, &description);
        verified.map_err(|refusal| {
            Error::internal(format!(
                "a patched CUDA graph is not what the body would capture ({refusal}): it uses \
                 addresses in a way that was not seen when it was learnt; use graph_mode = Jax, \
                 and report this"
            ))
        })
    }

    /// The recipe for an executable that was updated from this graph.
    pub(super) fn learn(
        &mut self,
        captured: &Captured,
        graph: &Graph,
        copies: &[CopyNode],
        call: &OneCall<'_>,
        body: &mut Body<'_>,
    ) -> Result<Option<(usize, Nodes)>> {
        let description = describe(graph, copies.iter().map(CopyNode::describe))?;
        // Nodes are told apart by their numbers, which must be the same in the graph that the
        // executable was made from.
        let original = describe(
            &captured.graph,
            captured.copies.iter().map(CopyNode::describe),
        )?;
        if !are_alike(&original, &description) {
            return Ok(None);
        }
        let nodes = Nodes::of(&captured.graph)?;
        // The captures below need the rest of this.
        let mut patches = std::mem::replace(&mut self.patches, Patches::none());
        let recipe = match patches.find(call.key) {
            Some(recipe) => {
                let verified = patches.verify(recipe, call.key, &description);
                verified.is_ok().then_some(recipe)
            }
            None => patches.learn(
                call.key,
                call.staging.key_sizes(),
                &description,
                |made_up| {
                    let captured = self.capture(call, made_up, body).and_then(|captured| {
                        let (graph, copies) =
                            captured.ok_or_else(|| Error::internal("the graph is too large"))?;
                        describe(&graph, copies.iter().map(CopyNode::describe))
                    });
                    captured.map_err(|error| error.to_string())
                },
            ),
        };
        self.patches = patches;
        Ok(recipe.map(|recipe| (recipe, nodes)))
    }
}
