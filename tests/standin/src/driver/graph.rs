//! Graphs, what is instantiated from them, and updates.

use super::work::{Copy, Kernel, Launched, Side, UserObject, Work};
use super::world::World;
use super::{Result, misuse};
use cudarc::driver::sys::{CUgraphExecUpdateResult, CUresult};
use std::collections::BTreeMap;
use std::ffi::c_void;
use std::sync::Arc;

pub(crate) struct Graph {
    pub(crate) device: usize,
    pub(crate) nodes: Vec<u64>,
    pub(crate) objects: Vec<Arc<UserObject>>,
}

pub(crate) struct Node {
    pub(crate) work: Work,
    /// What it waits for.
    pub(crate) after: Vec<u64>,
    /// To the parameters of a kernel, as long as the node stays.
    pub(crate) params: Vec<*mut c_void>,
}

pub(crate) struct Executable {
    pub(crate) device: usize,
    /// By the nodes of the graph that it was made from.
    origins: Vec<u64>,
    nodes: Vec<(Work, Vec<usize>)>,
    objects: Vec<Arc<UserObject>>,
}

impl Graph {
    pub(crate) fn new(device: usize) -> Graph {
        Graph {
            device,
            nodes: Vec::new(),
            objects: Vec::new(),
        }
    }
}

impl Node {
    pub(crate) fn new(work: Work, after: Vec<u64>) -> Node {
        let params = match &work {
            Work::Kernel(kernel) => {
                let params = kernel.params.iter();
                params
                    .map(|param| param.as_ptr().cast_mut().cast())
                    .collect()
            }
            _ => Vec::new(),
        };
        Node {
            work,
            after,
            params,
        }
    }
}

impl Work {
    /// Its number among the driver's kinds of nodes.
    pub(crate) fn kind(&self) -> u32 {
        match self {
            Work::Kernel(_) => 0,
            Work::Copy(_) => 1,
            Work::Memset(_) => 2,
            Work::Host(_) => 3,
            Work::AllocateInGraph(_) => 10,
            Work::FreeInGraph(_) => 11,
            Work::Graph(_) => 4,
            _ => 5,
        }
    }
}

/// Swaps the work of nodes that could be one another, as a driver may that pairs the nodes of two
/// graphs.
fn swap_twins(nodes: &mut [(Work, Vec<usize>)]) {
    let edges: Vec<Vec<usize>> = nodes.iter().map(|(_, after)| after.clone()).collect();
    let waits_for = |number: usize| edges.iter().map(move |after| after.contains(&number));
    for number in 1..nodes.len() {
        let kind = |number: usize| nodes[number].0.kind();
        let twin = (0..number).find(|&twin| {
            kind(twin) == kind(number)
                && edges[twin] == edges[number]
                && waits_for(twin).eq(waits_for(number))
        });
        if let Some(twin) = twin {
            let (before, rest) = nodes.split_at_mut(number);
            std::mem::swap(&mut before[twin].0, &mut rest[0].0);
        }
    }
}

impl World {
    pub(crate) fn add_node(&mut self, graph: u64, node: Node) -> Result<u64> {
        let handle = self.handle();
        self.graphs.get_mut(graph)?.nodes.push(handle);
        self.nodes.insert(handle, node);
        Ok(handle)
    }

    /// Destroys a graph that is in no capture.
    pub(crate) fn destroy_graph(&mut self, graph: u64) -> Result {
        self.graphs.get(graph)?;
        if self.captures.iter().any(|(_, c)| c.graph == graph) {
            let what = "a graph is destroyed that is being captured";
            return Err(misuse(CUresult::CUDA_ERROR_INVALID_VALUE, what));
        }
        for node in self.graphs.remove(graph)?.nodes {
            self.nodes.remove(node)?;
        }
        self.spare_graph = self.reuses_graphs.then_some(graph);
        Ok(())
    }

    /// A graph's nodes, each with the numbers of those that it waits for.
    fn numbered(&self, graph: &Graph) -> Result<Vec<(Work, Vec<usize>)>> {
        let numbers: BTreeMap<_, _> = graph.nodes.iter().copied().zip(0..).collect();
        let nodes = graph.nodes.iter();
        nodes
            .map(|&node| {
                let node = self.nodes.get(node)?;
                let after = node.after.iter().map(|other| numbers[other]).collect();
                Ok((node.work.clone(), after))
            })
            .collect()
    }

    pub(crate) fn instantiate(&mut self, graph: u64) -> Result<u64> {
        self.unless_restricted()?;
        let graph = self.graphs.get(graph)?;
        let executable = Executable {
            device: graph.device,
            origins: graph.nodes.clone(),
            nodes: self.numbered(graph)?,
            objects: graph.objects.clone(),
        };
        self.expect_current(executable.device, "a graph")?;
        let handle = self.handle();
        self.executables.insert(handle, executable);
        Ok(handle)
    }

    pub(crate) fn launch(&mut self, executable: u64, stream: u64) -> Result {
        let executable = self.executables.get(executable)?;
        let state = self.streams.get(stream)?;
        if executable.device != state.device {
            let what = "a graph on a stream of another device";
            return Err(misuse(CUresult::CUDA_ERROR_INVALID_VALUE, what));
        }
        if state.is_foreign {
            let what = "a graph is launched on a foreign stream";
            self.misuses.push(what.into());
        }
        let launched = Launched {
            nodes: executable.nodes.clone(),
            _objects: executable.objects.clone(),
        };
        self.enqueue(stream, Work::Graph(Arc::new(launched)))
    }

    /// Gives an executable what another graph has, if that is alike; or why it is not.
    pub(crate) fn update(
        &mut self,
        executable: u64,
        graph: u64,
    ) -> Result<CUgraphExecUpdateResult> {
        use CUgraphExecUpdateResult as Outcome;
        let graph = self.graphs.get(graph)?;
        let (nodes, objects, device) = (self.numbered(graph)?, graph.objects.clone(), graph.device);
        let own = self.executables.get_mut(executable)?;
        if own.device != device {
            let what = "an update from a graph of another device";
            return Err(misuse(CUresult::CUDA_ERROR_INVALID_VALUE, what));
        }
        let allocates = |nodes: &[(Work, _)]| nodes.iter().any(|(work, _)| work.kind() >= 10);
        if allocates(&nodes) || allocates(&own.nodes) {
            return Ok(Outcome::CU_GRAPH_EXEC_UPDATE_ERROR_NOT_SUPPORTED);
        }
        let edges = |nodes: &[(Work, Vec<usize>)]| -> Vec<_> {
            nodes.iter().map(|(_, after)| after.clone()).collect()
        };
        if edges(&nodes) != edges(&own.nodes) {
            return Ok(Outcome::CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED);
        }
        let mut pairs = nodes.iter().zip(&own.nodes);
        if !pairs.all(|((new, _), (own, _))| new.kind() == own.kind()) {
            return Ok(Outcome::CU_GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED);
        }
        own.nodes = nodes;
        swap_twins(&mut own.nodes);
        own.objects = objects;
        Ok(Outcome::CU_GRAPH_EXEC_UPDATE_SUCCESS)
    }

    /// Gives one node of an executable other work of its kind.
    pub(crate) fn set_node(&mut self, executable: u64, node: u64, work: Work) -> Result {
        self.nodes.get(node)?;
        if let Work::Kernel(Kernel { function, .. }) = work {
            self.functions.get(function)?;
        }
        let own = self.executables.get_mut(executable)?;
        let number = own.origins.iter().position(|&origin| origin == node);
        let Some(number) = number else {
            let what = "a node that the executable graph was not made from";
            return Err(misuse(CUresult::CUDA_ERROR_INVALID_VALUE, what));
        };
        let place = &mut own.nodes[number].0;
        if place.kind() != work.kind() {
            let what = "parameters for a node of another kind";
            return Err(misuse(CUresult::CUDA_ERROR_INVALID_VALUE, what));
        }
        *place = work;
        Ok(())
    }

    /// Refuses copies of what is no memory.
    pub(crate) fn check_copy(&self, copy: Copy) -> Result {
        [copy.from, copy.to]
            .into_iter()
            .try_for_each(|side| match side {
                Side::Host(_) => Ok(()),
                Side::Device(address) => self.memory.is_known(address, copy.bytes),
            })
    }
}
