//! A captured graph as plain data, to compare captures with each other.

/// The nodes of a graph in the order of their creation, and the edges between them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Description {
    pub(crate) nodes: Vec<Node>,
    /// Positions in `nodes`, sorted: what comes first, what waits for it.
    edges: Vec<(u32, u32)>,
}

/// A node, with all that the driver tells of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Node {
    Kernel(Kernel),
    Memset(Memset),
    /// One of our own staging copies, whose addresses are set before each launch.
    Copy {
        bytes: u64,
    },
    /// A node that is not looked into, by the name of its kind.
    Other(&'static str),
}

/// A kernel launch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Kernel {
    /// The handle of the function.
    pub(crate) function: u64,
    pub(crate) grid: [u32; 3],
    pub(crate) block: [u32; 3],
    /// Dynamic shared memory in bytes.
    pub(crate) shared: u32,
    /// The launch attributes, in any form in which equal ones are equal.
    pub(crate) attributes: Vec<u8>,
    /// The bytes of each parameter.
    pub(crate) params: Vec<Box<[u8]>>,
}

/// A memset of `height` rows of `width` elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Memset {
    pub(crate) dst: u64,
    pub(crate) value: u32,
    pub(crate) element_size: u32,
    pub(crate) width: u64,
    pub(crate) height: u64,
}

impl Description {
    /// The edges may come in any order.
    pub(crate) fn new(nodes: Vec<Node>, mut edges: Vec<(u32, u32)>) -> Description {
        edges.sort_unstable();
        Description { nodes, edges }
    }

    pub(crate) fn edges(&self) -> &[(u32, u32)] {
        &self.edges
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edges_are_a_set() {
        let nodes = || vec![Node::Other("event record"); 3];
        let one = Description::new(nodes(), vec![(1, 2), (0, 1)]);
        assert_eq!(one.edges(), [(0, 1), (1, 2)]);
        assert_eq!(one, Description::new(nodes(), vec![(0, 1), (1, 2)]));
        assert_ne!(one, Description::new(nodes(), vec![(0, 1)]));
    }
}
