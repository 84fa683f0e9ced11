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
    /// Words among these, by parameter and offset, that point into the stack of the host's thread,
    /// at what was gone when the capture was over: their value says nothing.
    pub(crate) stack_words: Vec<(usize, usize)>,
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

    /// The same graph, but with the words of `model` where both have words of a stack.
    pub(crate) fn with_stack_of(&self, model: &Description) -> Description {
        let mut graph = self.clone();
        for nodes in graph.nodes.iter_mut().zip(&model.nodes) {
            if let (Node::Kernel(kernel), Node::Kernel(model)) = nodes {
                kernel.take_stack_of(model);
            }
        }
        graph
    }
}

impl Node {
    /// What another node does not have alike, in words, with this one's first; for errors.
    pub(crate) fn difference(&self, other: &Node) -> String {
        match (self, other) {
            (Node::Kernel(one), Node::Kernel(other)) => one.difference(other),
            _ => format!("{self:?} and {other:?}"),
        }
    }
}

impl Kernel {
    fn take_stack_of(&mut self, model: &Kernel) {
        for word @ &(param, offset) in &self.stack_words {
            if model.stack_words.contains(word) {
                let word = offset..offset + 8;
                self.params[param][word.clone()].copy_from_slice(&model.params[param][word]);
            }
        }
    }

    fn difference(&self, other: &Kernel) -> String {
        let launch = |kernel: &Kernel| (kernel.function, kernel.grid, kernel.block, kernel.shared);
        if launch(self) != launch(other) {
            return format!("launches {:x?} and {:x?}", launch(self), launch(other));
        }
        if self.attributes != other.attributes {
            return "launch attributes".into();
        }
        let mut params = self.params.iter().zip(&other.params).enumerate();
        let differing = params.find(|(_, (one, other))| one != other);
        let Some((number, (one, other))) = differing else {
            return "numbers of parameters".into();
        };
        let mut bytes = one.iter().zip(other);
        let first = bytes.position(|(one, other)| one != other);
        // All that is left of words, for addresses.
        let start = first.unwrap_or(one.len().min(other.len())) & !7;
        let rest = |param: &[u8]| param[start..param.len().min(start + 16)].to_vec();
        let (len, one, other) = (one.len(), rest(one), rest(other));
        format!(
            "parameter {number} of {len} bytes, from byte {start} on: {one:02x?} and {other:02x?}"
        )
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

    #[test]
    fn differences_of_kernels_are_told() {
        let kernel = |function, params: &[&[u8]]| {
            let params = params.iter().map(|&param| param.into()).collect();
            Node::Kernel(Kernel {
                function,
                grid: [1; 3],
                block: [1; 3],
                shared: 0,
                attributes: Vec::new(),
                params,
                stack_words: Vec::new(),
            })
        };
        let mut other = [7; 20];
        other[18] = 9;
        let one = kernel(1, &[&[1], &[7; 20]]);
        let expected = "parameter 1 of 20 bytes, from byte 16 on: \
                        [07, 07, 07, 07] and [07, 07, 09, 07]";
        assert_eq!(one.difference(&kernel(1, &[&[1], &other])), expected);
        assert!(one.difference(&kernel(2, &[])).starts_with("launches (1, "));
        assert_eq!(one.difference(&kernel(1, &[&[1]])), "numbers of parameters");
        let copy = Node::Copy { bytes: 4 };
        assert!(one.difference(&copy).ends_with("and Copy { bytes: 4 }"));
    }
}
