//! The manifest: what the Python package and the command line know of a library, as JSON.

use crate::absent;
use crate::registry::{ABI_VERSION, Target};
use crate::signature::{Callable, Dim, GraphCacheMax, Kind, Length, Param, StaticType};
use serde_json::{Map, Value, json};

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
    json!({
        "abi": ABI_VERSION,
        "version": env!("CARGO_PKG_VERSION"),
        "errors": errors,
        "cuda_libraries": CUDA_LIBRARIES,
        "targets": targets.iter().map(target).collect::<Vec<_>>(),
    })
    .to_string()
}

/// The first part of the contract in which two callables differ.
pub(crate) fn difference(a: &Callable, b: &Callable) -> Option<String> {
    let (a, b) = (contract(a), contract(b));
    a.into_iter()
        .find(|(key, value)| b.get(key) != Some(value))
        .map(|(key, _)| match key.as_str() {
            "params" => "parameters".into(),
            _ => format!("`{key}`"),
        })
}

/// What tracing needs to know, and what a target's name stands for.
fn contract(callable: &Callable) -> Map<String, Value> {
    let params: Vec<_> = callable
        .params
        .iter()
        .filter(|p| matches!(p.ty.kind, Kind::Array | Kind::ArrayMut | Kind::Static))
        .map(|p| param(callable, p))
        .collect();
    let vjp = callable.vjp.map(|vjp| {
        let vjp = vjp();
        json!({"crate": vjp.crate_name(), "name": vjp.name})
    });
    let mut map = Map::new();
    map.insert("params".into(), params.into());
    map.insert("vmap_method".into(), callable.vmap_method.into());
    map.insert("batch_dims".into(), callable.batch_dims.into());
    map.insert("has_side_effect".into(), callable.has_side_effect.into());
    map.insert("vjp".into(), vjp.into());
    map
}

fn target(target: &Target) -> Value {
    let first = target.callables[0].0;
    let (krate, name) = (first.crate_name(), first.name);
    let mut map = contract(first);
    let mut contract = Value::Object(map.clone());
    // Another crate may have turned on `preserve_order` of `serde_json`.
    contract.sort_all_objects();
    let hash = fnv1a(&format!("{ABI_VERSION} {contract}"));
    map.insert("crate".into(), krate.into());
    map.insert("name".into(), name.into());
    let hash = (hash >> 32) as u32 ^ hash as u32;
    map.insert("target".into(), format!("{krate}.{name}.{hash:08x}").into());
    let docs = target.callables.iter().map(|(callable, _)| callable.doc);
    let doc = docs.into_iter().find(|doc| !doc.is_empty()).unwrap_or("");
    map.insert("doc".into(), doc.into());
    let handlers: Vec<_> = target
        .callables
        .iter()
        .map(|&(callable, index)| handler(callable, index))
        .collect();
    map.insert("handlers".into(), handlers.into());
    let absent = target.absent.map(|(platform, index)| {
        let reason = absent::error(first, platform).to_string();
        json!({"platform": platform.name(), "index": index, "reason": reason})
    });
    map.insert("absent".into(), absent.into());
    Value::Object(map)
}

fn handler(callable: &Callable, index: usize) -> Value {
    let graph_cache_max = match callable.graph_cache_max {
        GraphCacheMax::Default => Value::Null,
        GraphCacheMax::Limit(limit) => limit.into(),
        GraphCacheMax::Unlimited => "unlimited".into(),
    };
    let scratch: Vec<_> = callable
        .scratch()
        .map(|(_, p)| param(callable, p))
        .collect();
    json!({
        "platform": callable.platform().name(),
        "index": index,
        "file": callable.file,
        "line": callable.line,
        "module": callable.module,
        "graph_mode": callable.graph_mode.name(),
        "stage_in": callable.stage_in,
        "stage_out": callable.stage_out,
        "graph_cache_max": graph_cache_max,
        "modules": callable.modules.map(|uses| uses.iter().map(|used| used.path).collect::<Vec<_>>()),
        "preload": callable.preload,
        "state": callable.state,
        "scratch": scratch,
    })
}

fn param(callable: &Callable, param: &Param) -> Value {
    let role = match param.ty.kind {
        Kind::Array => "input",
        Kind::ArrayMut if param.in_out => "in_out",
        Kind::ArrayMut => "output",
        Kind::Scratch => "scratch",
        Kind::Static | Kind::Context | Kind::State | Kind::PerDevice => "scalar",
    };
    match param.ty.value {
        Some(value) => {
            let (dtype, length) = match value {
                StaticType::Str => ("str", Value::Null),
                StaticType::Number(dtype, length) => (dtype.name(), length_json(length)),
            };
            json!({"name": param.name, "role": role, "dtype": dtype, "length": length})
        }
        None => json!({
            "name": param.name,
            "role": role,
            "dtype": param.ty.dtype.map(|dtype| dtype.name()),
            "rank": param.ty.rank,
            "packed": param.ty.packed,
            "dims": param.dims.map(|dims| {
                dims.iter().map(|dim| dim_json(callable, dim)).collect::<Vec<_>>()
            }),
        }),
    }
}

fn length_json(length: Length) -> Value {
    match length {
        Length::One => Value::Null,
        Length::Slice => "slice".into(),
        Length::Fixed(k) => k.into(),
    }
}

fn dim_json(callable: &Callable, dim: &Dim) -> Value {
    match *dim {
        Dim::Const(value) => value.into(),
        Dim::Name(name) => json!({"dim": callable.dim_names[name]}),
        Dim::Axis(param, axis) => json!({"axis": [callable.params[param].name, axis]}),
        Dim::Scalar(param) => json!({"scalar": callable.params[param].name}),
        Dim::Op(op, a, b) => {
            json!({"op": op.name(), "args": [dim_json(callable, a), dim_json(callable, b)]})
        }
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
