//! The cache on disks that are full or read-only: real ones, mounted where the system lets anybody
//! do that in a namespace of its own.

use super::faults::unfinished;
use super::tests::{Folder, get, key, set_age};
use super::*;
use std::path::Path;
use std::process::Command;

const MOUNTED: &str = "JAX_CALLABLE_TEST_MOUNTED";

/// What runs on the mounted disks.
#[test]
fn mounted() {
    let Some(folder) = std::env::var_os(MOUNTED).map(PathBuf::from) else {
        return;
    };
    match folder.file_name().and_then(OsStr::to_str).unwrap() {
        "full" => on_a_full_disk(&folder),
        "files" => on_a_disk_without_room_for_files(&folder),
        "read-only" => on_a_read_only_disk(&folder),
        other => panic!("{other}"),
    }
    eprintln!("done");
}

/// Runs `mounted` in a folder, where `mount` mounts something first; its standard error, or
/// nothing where mounting is not allowed.
fn on_mounted(folder: &Path, mount: &str) -> Option<String> {
    let script = format!("{mount} && echo mounted && exec \"$1\" --exact \"$2\" --nocapture");
    let name = concat!(module_path!(), "::mounted");
    let (_, name) = name.split_once("::").unwrap();
    let output = Command::new("unshare")
        .args(["--map-root-user", "--mount", "sh", "-c", &script])
        .arg(folder)
        .arg(std::env::current_exe().unwrap())
        .arg(name)
        .env(MOUNTED, folder)
        .output();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    let (out, err) = match output {
        Ok(output) => (text(output.stdout), text(output.stderr)),
        Err(error) => (String::new(), error.to_string()),
    };
    if !out.contains("mounted\n") {
        eprintln!("skipped: nothing can be mounted here: {}", err.trim());
        return None;
    }
    assert!(err.contains("done\n"), "{out}\n{err}");
    Some(err)
}

/// The lines of standard error that the cache wrote.
fn warnings(text: &str) -> Vec<&str> {
    let lines = text.lines();
    lines
        .filter(|line| line.starts_with("jax-callable: "))
        .collect()
}

fn on_a_full_disk(folder: &Path) {
    let cache = Cache::new(folder.join("cuda"), LIMIT);
    let bytes = |i: u8| vec![i; 3000];
    let name = |i: u8| key(&i.to_string());
    let mut stored = Vec::new();
    for i in 0..40 {
        assert_eq!(get(&cache, name(i), &bytes(i)), (bytes(i), true));
        assert!(unfinished(&cache).is_empty());
        if cache.path(name(i)).exists() {
            stored.push(i);
        }
    }
    assert!((10..=16).contains(&stored.len()), "{}", stored.len());
    for i in 0..40 {
        assert_eq!(
            get(&cache, name(i), &bytes(i)),
            (bytes(i), !stored.contains(&i))
        );
    }
    // There is room for a part of an entry.
    for i in &stored[..2] {
        fs::remove_file(cache.path(name(*i))).unwrap();
    }
    let long = [1; 20_000];
    assert_eq!(get(&cache, key("long"), &long), (long.to_vec(), true));
    assert!(unfinished(&cache).is_empty());
    // What fills the disk is what killed writers left.
    let old = cache.folder.join("old.tmp");
    assert!(fs::write(&old, [0; 64 << 10]).is_err());
    assert_eq!(get(&cache, key("new"), b"abc"), (b"abc".to_vec(), true));
    assert_eq!(get(&cache, key("new"), b"abc"), (b"abc".to_vec(), true));
    set_age(&old, 2 * ABANDONED);
    assert_eq!(get(&cache, key("new"), b"abc"), (b"abc".to_vec(), true));
    assert_eq!(get(&cache, key("new"), b"?"), (b"abc".to_vec(), false));
}

#[test]
fn a_full_disk_costs_a_compilation_and_heals() {
    let folder = Folder::new();
    let disk = folder.0.join("full");
    fs::create_dir(&disk).unwrap();
    let Some(text) = on_mounted(&disk, "mount -t tmpfs -o size=64k tmpfs \"$0\"") else {
        return;
    };
    let [warning] = warnings(&text)[..] else {
        panic!("{text}");
    };
    assert!(
        warning.contains("full/cuda: No space left on device"),
        "{warning}"
    );
    assert!(warning.contains("Set JAX_CALLABLE_CACHE_DIR"), "{warning}");
}

fn on_a_disk_without_room_for_files(folder: &Path) {
    let cache = Cache::new(folder.join("cuda"), LIMIT);
    for name in ["a", "b", "c"] {
        assert_eq!(get(&cache, key(name), b"abc"), (b"abc".to_vec(), true));
    }
    assert_eq!(get(&cache, key("a"), b"?"), (b"abc".to_vec(), false));
    assert_eq!(get(&cache, key("c"), b"abc"), (b"abc".to_vec(), true));
}

#[test]
fn a_disk_without_room_for_files_costs_a_compilation() {
    let folder = Folder::new();
    let disk = folder.0.join("files");
    fs::create_dir(&disk).unwrap();
    let mount = "mount -t tmpfs -o nr_inodes=4 tmpfs \"$0\"";
    if let Some(text) = on_mounted(&disk, mount) {
        assert_eq!(warnings(&text).len(), 1, "{text}");
    }
}

fn on_a_read_only_disk(folder: &Path) {
    let cache = Cache::new(folder.join("cuda"), LIMIT);
    assert!(fs::write(folder.join("probe"), "").is_err());
    assert_eq!(get(&cache, key("a"), b"?"), (b"abc".to_vec(), false));
    eprintln!("nothing to warn of so far");
    for _ in 0..2 {
        assert_eq!(get(&cache, key("b"), b"abc"), (b"abc".to_vec(), true));
    }
    assert_eq!(get(&cache, key("damaged"), b"abc"), (b"abc".to_vec(), true));
    // Where not even the folder is there.
    let cache = Cache::new(folder.join("other"), LIMIT);
    assert_eq!(get(&cache, key("b"), b"abc"), (b"abc".to_vec(), true));
}

#[test]
fn a_read_only_disk_is_read() {
    let folder = Folder::new();
    let disk = folder.0.join("read-only");
    let cache = Cache::new(disk.join("cuda"), LIMIT);
    get(&cache, key("a"), b"abc");
    fs::write(cache.path(key("damaged")), "damaged").unwrap();
    let mount = "mount --bind \"$0\" \"$0\" && mount -o remount,bind,ro \"$0\"";
    let Some(text) = on_mounted(&disk, mount) else {
        return;
    };
    let (before, after) = text.split_once("nothing to warn of so far").unwrap();
    assert!(warnings(before).is_empty(), "{text}");
    let warnings = warnings(after);
    assert_eq!(warnings.len(), 2, "{text}");
    for (warning, place) in warnings.iter().zip(["cuda", "other"]) {
        let text = format!("read-only/{place}: Read-only file system (os error 30). ");
        assert!(warning.contains(&text), "{warning}");
    }
}
