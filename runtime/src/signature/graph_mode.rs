//! What the attribute says of graphs.

/// How CUDA graphs are used by a target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GraphMode {
    /// The body runs on XLA's stream at every call.
    None,
    /// XLA may capture the body into its own command buffers.
    Jax,
    /// A graph of our own, updated when buffers move.
    Warp,
    /// A graph of our own over staging buffers, with the copies as graph nodes.
    WarpStaged,
    /// A graph of our own over staging buffers, with the copies around it.
    WarpStagedEx,
}

impl GraphMode {
    /// Whether the graphs are our own, not XLA's.
    pub const fn is_own(self) -> bool {
        match self {
            GraphMode::None | GraphMode::Jax => false,
            GraphMode::Warp | GraphMode::WarpStaged | GraphMode::WarpStagedEx => true,
        }
    }

    /// Its name in the attribute and the manifest.
    pub const fn name(self) -> &'static str {
        match self {
            GraphMode::None => "None",
            GraphMode::Jax => "Jax",
            GraphMode::Warp => "Warp",
            GraphMode::WarpStaged => "WarpStaged",
            GraphMode::WarpStagedEx => "WarpStagedEx",
        }
    }
}

/// How many graphs a target keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GraphCacheMax {
    /// The runtime's default, looked up at use.
    Default,
    /// This many.
    Limit(u64),
    /// No limit.
    Unlimited,
}
