//! The manifest: what the Python package and the command line know of a library, as JSON.

use crate::absent;
use crate::registry::{ABI_VERSION, Target};
use crate::signature::{
    Callable, Dim, GraphCacheMax, Kind, Length, ModuleUse, Param, Platform, StaticType,
};
use serde_core::ser::{Serialize, SerializeMap, Serializer};

/// The libraries of CUDA, beside the driver, that this library may open, each after those that
/// it needs itself.
const CUDA_LIBRARIES: &[&str] = if cfg!(all(feature = "_cuda", feature = "cublas")) {
    &["nvrtc", "cublasLt", "cublas"]
} else if cfg!(feature = "_cuda") {
    &["nvrtc"]
} else {
    &[]
};

/// Writes the manifest.
pub(crate) fn write(targets: &[Target], errors: &[String]) -> String {
    json(&Manifest { targets, errors })
}

/// The first part of the contract in which two callables differ.
pub(crate) fn difference(a: &Callable, b: &Callable) -> Option<String> {
    let part = |callable, key| json(&Part { callable, key });
    let mut keys = CONTRACT.into_iter();
    let key = keys.find(|key| part(a, key) != part(b, key))?;
    Some(match key {
        "params" => "parameters".into(),
        _ => format!("`{key}`"),
    })
}

/// A value as JSON. There is nothing in a manifest that JSON has not.
pub(crate) fn json(value: &impl Serialize) -> String {
    serde_json::to_string(value).unwrap_or_default()
}

struct Manifest<'a> {
    targets: &'a [Target],
    errors: &'a [String],
}

impl Serialize for Manifest<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut map = to.serialize_map(None)?;
        map.serialize_entry("abi", &ABI_VERSION)?;
        map.serialize_entry("version", env!("CARGO_PKG_VERSION"))?;
        map.serialize_entry("errors", self.errors)?;
        map.serialize_entry("cuda_libraries", CUDA_LIBRARIES)?;
        map.serialize_entry("targets", self.targets)?;
        map.end()
    }
}

/// What tracing needs to know, and what a target's name stands for; in the order of the alphabet,
/// as all that the name is made of.
const CONTRACT: [&str; 5] = [
    "batch_dims",
    "has_side_effect",
    "params",
    "vjp",
    "vmap_method",
];

struct Contract<'a>(&'a Callable);

impl Contract<'_> {
    fn add_to<M: SerializeMap>(&self, map: &mut M) -> Result<(), M::Error> {
        let callable = self.0;
        let mut keys = CONTRACT.into_iter();
        keys.try_for_each(|key| map.serialize_entry(key, &Part { callable, key }))
    }
}

impl Serialize for Contract<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut map = to.serialize_map(None)?;
        self.add_to(&mut map)?;
        map.end()
    }
}

/// A part of the contract.
struct Part<'a> {
    callable: &'a Callable,
    key: &'static str,
}

impl Serialize for Part<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let callable = self.callable;
        match self.key {
            "batch_dims" => callable.batch_dims.serialize(to),
            "has_side_effect" => callable.has_side_effect.serialize(to),
            "vmap_method" => callable.vmap_method.serialize(to),
            "vjp" => callable.vjp.map(|vjp| Path(vjp())).serialize(to),
            _ => to.collect_seq(callable.params.iter().filter_map(|param| {
                let is_seen = matches!(param.ty.kind, Kind::Array | Kind::ArrayMut | Kind::Static);
                is_seen.then_some(ParamOf { callable, param })
            })),
        }
    }
}

/// Where a callable is found.
struct Path<'a>(&'a Callable);

impl Serialize for Path<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut map = to.serialize_map(None)?;
        map.serialize_entry("crate", self.0.crate_name())?;
        map.serialize_entry("name", self.0.name)?;
        map.end()
    }
}

impl Serialize for Target {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let first = self.callables[0].0;
        let (krate, name) = (first.crate_name(), first.name);
        let hash = fnv1a(&format!("{ABI_VERSION} {}", json(&Contract(first))));
        let hash = (hash >> 32) as u32 ^ hash as u32;
        let mut docs = self.callables.iter().map(|(callable, _)| callable.doc);
        let doc = docs.find(|doc| !doc.is_empty()).unwrap_or("");
        let handlers = self.callables.iter();
        let handlers: Vec<_> = handlers
            .map(|&(callable, index)| Handler { callable, index })
            .collect();
        let absent = self.absent.map(|(platform, index)| Absent {
            platform,
            index,
            reason: absent::error(first, platform).to_string(),
        });
        let mut map = to.serialize_map(None)?;
        Contract(first).add_to(&mut map)?;
        map.serialize_entry("crate", krate)?;
        map.serialize_entry("name", name)?;
        map.serialize_entry("target", &format!("{krate}.{name}.{hash:08x}"))?;
        map.serialize_entry("doc", doc)?;
        map.serialize_entry("handlers", &handlers)?;
        map.serialize_entry("absent", &absent)?;
        map.end()
    }
}

struct Absent {
    platform: Platform,
    index: usize,
    reason: String,
}

impl Serialize for Absent {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut map = to.serialize_map(None)?;
        map.serialize_entry("platform", self.platform.name())?;
        map.serialize_entry("index", &self.index)?;
        map.serialize_entry("reason", &self.reason)?;
        map.end()
    }
}

struct Handler<'a> {
    callable: &'a Callable,
    index: usize,
}

impl Serialize for Handler<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let callable = self.callable;
        let paths = |uses: &[ModuleUse]| uses.iter().map(|used| used.path).collect::<Vec<_>>();
        let scratch = callable.scratch();
        let scratch: Vec<_> = scratch
            .map(|(_, param)| ParamOf { callable, param })
            .collect();
        let mut map = to.serialize_map(None)?;
        map.serialize_entry("platform", callable.platform().name())?;
        map.serialize_entry("index", &self.index)?;
        map.serialize_entry("file", callable.file)?;
        map.serialize_entry("line", &callable.line)?;
        map.serialize_entry("module", callable.module)?;
        map.serialize_entry("graph_mode", callable.graph_mode.name())?;
        map.serialize_entry("stage_in", &callable.stage_in)?;
        map.serialize_entry("stage_out", &callable.stage_out)?;
        match callable.graph_cache_max {
            GraphCacheMax::Default => map.serialize_entry("graph_cache_max", &())?,
            GraphCacheMax::Limit(limit) => map.serialize_entry("graph_cache_max", &limit)?,
            GraphCacheMax::Unlimited => map.serialize_entry("graph_cache_max", "unlimited")?,
        }
        map.serialize_entry("modules", &callable.modules.map(paths))?;
        map.serialize_entry("preload", callable.preload)?;
        map.serialize_entry("state", &callable.state)?;
        map.serialize_entry("scratch", &scratch)?;
        map.end()
    }
}

struct ParamOf<'a> {
    callable: &'a Callable,
    param: &'a Param,
}

impl Serialize for ParamOf<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let ParamOf { callable, param } = self;
        let role = match param.ty.kind {
            Kind::Array => "input",
            Kind::ArrayMut if param.in_out => "in_out",
            Kind::ArrayMut => "output",
            Kind::Scratch => "scratch",
            Kind::Static | Kind::Context | Kind::State | Kind::PerDevice => "scalar",
        };
        let mut map = to.serialize_map(None)?;
        match param.ty.value {
            Some(value) => {
                let (dtype, length) = match value {
                    StaticType::Str => ("str", Length::One),
                    StaticType::Number(dtype, length) => (dtype.name(), length),
                };
                map.serialize_entry("dtype", dtype)?;
                match length {
                    Length::One => map.serialize_entry("length", &())?,
                    Length::Slice => map.serialize_entry("length", "slice")?,
                    Length::Fixed(k) => map.serialize_entry("length", &k)?,
                }
                map.serialize_entry("name", param.name)?;
            }
            None => {
                let of = |dims: &'static [Dim]| {
                    let dims = dims.iter().map(|dim| DimOf { callable, dim });
                    dims.collect::<Vec<_>>()
                };
                map.serialize_entry("dims", &param.dims.map(of))?;
                map.serialize_entry("dtype", &param.ty.dtype.map(|dtype| dtype.name()))?;
                map.serialize_entry("name", param.name)?;
                map.serialize_entry("packed", param.ty.packed)?;
                map.serialize_entry("rank", &param.ty.rank)?;
            }
        }
        map.serialize_entry("role", role)?;
        map.end()
    }
}

struct DimOf<'a> {
    callable: &'a Callable,
    dim: &'a Dim,
}

impl Serialize for DimOf<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let DimOf { callable, dim } = *self;
        if let Dim::Const(value) = dim {
            return value.serialize(to);
        }
        let name = |param: usize| callable.params[param].name;
        let mut map = to.serialize_map(None)?;
        match *dim {
            Dim::Const(_) => {}
            Dim::Name(dim) => map.serialize_entry("dim", callable.dim_names[dim])?,
            Dim::Axis(param, axis) => map.serialize_entry("axis", &(name(param), axis))?,
            Dim::Scalar(param) => map.serialize_entry("scalar", name(param))?,
            Dim::Op(op, a, b) => {
                let args = [a, b].map(|dim| DimOf { callable, dim });
                map.serialize_entry("args", &args)?;
                map.serialize_entry("op", op.name())?;
            }
        }
        map.end()
    }
}

/// FNV-1a, 64 bits: the same on every machine and in every build, which the standard
/// library's hashers do not promise.
fn fnv1a(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    use super::fnv1a;

    #[test]
    fn the_hash_is_the_published_one() {
        assert_eq!(fnv1a(""), 0xcbf2_9ce4_8422_2325);
        assert_eq!(fnv1a("foobar"), 0x8594_4171_f739_67e8);
    }
}
