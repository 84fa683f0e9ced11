//! CUDA's libraries beside the driver, opened when they are needed.

use libloading::Library;
use std::error::Error as _;

/// The names of a library, the best first, for a driver's version. A driver runs what belongs to
/// its own major version, and to older ones.
pub(super) fn names(stem: &str, driver: i32) -> Vec<String> {
    let majors: &[_] = if driver >= 13_000 { &[13, 12] } else { &[12] };
    let names = majors.iter().map(|major| format!("{stem}.{major}"));
    names.collect()
}

/// Opens the first of these that can be, or says why none can.
pub(super) fn open(names: &[String]) -> Result<(Library, &str), String> {
    let mut reasons = Vec::new();
    for name in names {
        // SAFETY: the initialisers of CUDA's libraries may run at any time.
        match unsafe { Library::new(name) } {
            Ok(library) => return Ok((library, name)),
            Err(error) => reasons.push(match error.source() {
                Some(source) => source.to_string(),
                None => format!("{name}: {error}"),
            }),
        }
    }
    Err(reasons.join("; "))
}

#[cfg(test)]
mod tests {
    use super::names;

    #[test]
    fn a_driver_gets_no_newer_library() {
        assert_eq!(names("libnvrtc.so", 12_080), ["libnvrtc.so.12"]);
        let both = ["libnvrtc.so.13", "libnvrtc.so.12"];
        assert_eq!(names("libnvrtc.so", 13_000), both);
    }
}
