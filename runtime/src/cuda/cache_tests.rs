use super::*;
use std::convert::Infallible;
use std::ops::Range;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::Command;
use std::sync::Barrier;
use std::sync::atomic::AtomicUsize;

/// A folder of its own, removed when dropped.
pub(super) struct Folder(pub(super) PathBuf);

impl Folder {
    pub(super) fn new() -> Folder {
        let folder = std::env::temp_dir().join(format!("jax-callable-{}", unfinished_name()));
        fs::create_dir(&folder).unwrap();
        Folder(folder)
    }

    pub(super) fn cache(&self) -> Cache {
        Cache::new(self.0.join("cuda"), LIMIT)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

pub(super) fn key(name: &str) -> Key {
    Key::new(["12.9", name])
}

/// What the cache gives for a key, and whether that was compiled.
pub(super) fn get(cache: &Cache, key: Key, bytes: &[u8]) -> (Vec<u8>, bool) {
    let mut compiled = false;
    let result = cache.get_or(key, || {
        compiled = true;
        Ok::<_, Infallible>(bytes.to_vec())
    });
    let Ok(result) = result;
    (result, compiled)
}

pub(super) fn files(cache: &Cache) -> Vec<String> {
    let names = fs::read_dir(&cache.folder).unwrap();
    let mut names: Vec<_> = names
        .map(|file| file.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

#[test]
fn what_was_compiled_is_found_again() {
    let folder = Folder::new();
    let cache = folder.cache();
    assert_eq!(get(&cache, key("a"), b"abc"), (b"abc".to_vec(), true));
    assert_eq!(get(&cache, key("b"), b""), (b"".to_vec(), true));
    // Another process's view of the same folder.
    let cache = folder.cache();
    assert_eq!(get(&cache, key("a"), b"?"), (b"abc".to_vec(), false));
    assert_eq!(get(&cache, key("b"), b"?"), (b"".to_vec(), false));
    assert_eq!(files(&cache).len(), 2);
}

#[test]
fn an_entry_begins_with_the_compiled_bytes() {
    let folder = Folder::new();
    let cache = folder.cache();
    get(&cache, key("a"), b"\x7fELF...");
    let entry = fs::read(cache.path(key("a"))).unwrap();
    assert!(entry.starts_with(b"\x7fELF..."));
    assert_eq!(entry.len(), 7 + 2 * HASH);
}

#[test]
fn failures_are_not_stored() {
    let folder = Folder::new();
    let cache = folder.cache();
    assert_eq!(cache.get_or(key("a"), || Err("no")), Err("no"));
    assert!(!cache.folder.exists());
    assert_eq!(get(&cache, key("a"), b"abc"), (b"abc".to_vec(), true));
}

#[test]
fn every_part_of_a_key_counts_and_so_do_its_bounds() {
    let lists: [&[&str]; 6] = [
        &["12.9", "sm_90", "text"],
        &["12.8", "sm_90", "text"],
        &["12.9", "sm_80", "text"],
        &["12.9", "sm_90", "text "],
        &["12.9", "sm_90", "te", "xt"],
        &["12.9", "sm_90", "text", ""],
    ];
    let keys: Vec<_> = lists
        .iter()
        .map(|list| Key::new(list.iter().copied()).hex())
        .collect();
    for (i, key) in keys.iter().enumerate() {
        assert_eq!(key.len(), 64);
        assert!(!keys[..i].contains(key), "{:?}", lists[i]);
    }
}

#[test]
fn damage_anywhere_is_noticed_and_mended() {
    let folder = Folder::new();
    let cache = folder.cache();
    let bytes: Vec<u8> = (0..50).collect();
    get(&cache, key("a"), &bytes);
    let path = cache.path(key("a"));
    let whole = fs::read(&path).unwrap();
    let mut damaged: Vec<Vec<u8>> = Vec::new();
    for i in 0..whole.len() {
        damaged.push(whole[..i].to_vec());
        damaged.push(whole[i + 1..].to_vec());
        for bit in [1, 0x80] {
            let mut entry = whole.clone();
            entry[i] ^= bit;
            damaged.push(entry);
        }
    }
    damaged.push([&whole[..], b"\0"].concat());
    damaged.push(vec![0; whole.len()]);
    // Whole, but of another key.
    damaged.push(seal(key("b"), &bytes));
    for entry in damaged {
        fs::write(&path, &entry).unwrap();
        assert_eq!(get(&cache, key("a"), &bytes), (bytes.clone(), true));
        assert_eq!(fs::read(&path).unwrap(), whole);
    }
    assert_eq!(get(&cache, key("a"), b"?"), (bytes, false));
    assert_eq!(files(&cache).len(), 1);
}

#[test]
fn what_is_no_file_is_left_alone_or_replaced() {
    let folder = Folder::new();
    let cache = folder.cache();
    fs::create_dir_all(cache.path(key("folder")).join("inner")).unwrap();
    symlink("nowhere", cache.path(key("dangling"))).unwrap();
    let target = folder.0.join("precious");
    fs::write(&target, "precious").unwrap();
    symlink(&target, cache.path(key("link"))).unwrap();
    let pipe = Command::new("mkfifo").arg(cache.path(key("pipe"))).status();
    assert!(pipe.unwrap().success());
    for (name, is_kept) in [
        ("folder", false),
        ("dangling", true),
        ("link", true),
        ("pipe", true),
    ] {
        assert_eq!(get(&cache, key(name), b"abc"), (b"abc".to_vec(), true));
        assert_eq!(get(&cache, key(name), b"abc"), (b"abc".to_vec(), !is_kept));
    }
    assert_eq!(fs::read(target).unwrap(), b"precious");
    assert!(cache.path(key("folder")).join("inner").is_dir());
    assert!(files(&cache).iter().all(|name| name.ends_with(ENTRY)));
}

#[test]
fn a_folder_that_cannot_be_written_costs_a_compilation() {
    let folder = Folder::new();
    fs::write(folder.0.join("file"), "").unwrap();
    let long = folder.0.join("x".repeat(5000));
    for place in [&folder.0.join("file"), &long, Path::new("/proc/nothing")] {
        let cache = Cache::new(place.join("cuda"), LIMIT);
        for _ in 0..2 {
            assert_eq!(get(&cache, key("a"), b"abc"), (b"abc".to_vec(), true));
        }
    }
}

#[test]
fn a_folder_that_is_read_only_is_read() {
    let folder = Folder::new();
    let cache = folder.cache();
    get(&cache, key("a"), b"abc");
    fs::set_permissions(&cache.folder, fs::Permissions::from_mode(0o555)).unwrap();
    let may_write = File::create(cache.folder.join("probe")).is_ok();
    assert_eq!(get(&cache, key("a"), b"?"), (b"abc".to_vec(), false));
    assert_eq!(get(&cache, key("b"), b"abc"), (b"abc".to_vec(), true));
    // A superuser writes anywhere.
    assert_eq!(get(&cache, key("b"), b"abc"), (b"abc".to_vec(), !may_write));
    fs::set_permissions(&cache.folder, fs::Permissions::from_mode(0o755)).unwrap();
}

pub(super) fn set_age(path: &Path, age: Duration) {
    let file = File::open(path).unwrap();
    file.set_modified(SystemTime::now() - age).unwrap();
}

#[test]
fn the_least_recently_used_go_first() {
    let folder = Folder::new();
    let entry = 1000 + 2 * HASH as u64;
    let cache = Cache::new(folder.0.join("cuda"), 3 * entry);
    let bytes = [7; 1000];
    for (age, name) in [(50, "a"), (40, "b"), (30, "c")] {
        get(&cache, key(name), &bytes);
        set_age(&cache.path(key(name)), Duration::from_secs(age));
    }
    // Used, so that it is no more the oldest.
    assert!(!get(&cache, key("a"), b"?").1);
    get(&cache, key("d"), &bytes);
    let exists = |name| cache.path(key(name)).exists();
    assert_eq!(["a", "b", "c", "d"].map(exists), [true, false, true, true]);
    // For what can never fit, nothing has to go.
    get(&cache, key("larger than all"), &[7; 4000]);
    assert_eq!(["a", "b", "c", "d"].map(exists), [true, false, true, true]);
    assert_eq!(files(&cache).len(), 3);
}

#[test]
fn what_killed_writers_left_is_removed_later() {
    let folder = Folder::new();
    let cache = folder.cache();
    get(&cache, key("a"), b"abc");
    let names = ["old.tmp", "new.tmp", "old.other", "old"].map(|name| cache.folder.join(name));
    for path in &names {
        fs::write(path, "half an entry").unwrap();
        if !path.ends_with("new.tmp") {
            set_age(path, 2 * ABANDONED);
        }
    }
    get(&cache, key("b"), b"abc");
    let exist = names.each_ref().map(|path| path.exists());
    assert_eq!(exist, [false, true, true, true]);
}

/// Gets every key many times, and checks what comes.
fn work(cache: &Cache, keys: Range<usize>) -> usize {
    let mut compilations = 0;
    for _ in 0..20 {
        for i in keys.clone() {
            let bytes = vec![i as u8; 100 * (i + 1)];
            let (found, compiled) = get(cache, key(&i.to_string()), &bytes);
            assert_eq!(found, bytes);
            compilations += usize::from(compiled);
        }
    }
    compilations
}

#[test]
fn threads_share_a_folder() {
    let folder = Folder::new();
    let (threads, keys) = (4, 0..10);
    let barrier = Barrier::new(threads);
    let compilations = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                barrier.wait();
                let count = work(&folder.cache(), keys.clone());
                compilations.fetch_add(count, Ordering::SeqCst);
            });
        }
    });
    assert!(compilations.into_inner() <= threads * keys.len());
    assert_eq!(files(&folder.cache()).len(), keys.len());
}

#[test]
fn threads_share_a_folder_that_is_too_small() {
    let folder = Folder::new();
    let barrier = Barrier::new(4);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                barrier.wait();
                work(&Cache::new(folder.0.join("cuda"), 2000), 0..10);
            });
        }
    });
    assert!(
        files(&folder.cache())
            .iter()
            .all(|name| name.ends_with(ENTRY))
    );
}

const CHILD: &str = "JAX_CALLABLE_TEST_CACHE";

/// What the next test runs in other processes.
#[test]
fn child() {
    if let Some(folder) = std::env::var_os(CHILD) {
        work(&Cache::new(folder.into(), LIMIT), 0..10);
    }
}

#[test]
fn processes_share_a_folder_and_may_be_killed() {
    let folder = Folder::new();
    let start = || {
        let mut command = Command::new(std::env::current_exe().unwrap());
        let name = concat!(module_path!(), "::child");
        let (_, name) = name.split_once("::").unwrap();
        command
            .args(["--exact", name])
            .env(CHILD, folder.0.join("cuda"));
        command.stdout(process::Stdio::piped()).spawn().unwrap()
    };
    let children: Vec<_> = (0..3).map(|_| start()).collect();
    let mut killed = start();
    killed.kill().unwrap();
    killed.wait().unwrap();
    for child in children {
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success());
        let text = String::from_utf8(output.stdout).unwrap();
        assert!(text.contains("1 passed"), "{text}");
    }
    let cache = folder.cache();
    assert_eq!(work(&cache, 0..10), 0);
}

#[test]
fn the_environment_chooses_the_folder() {
    let find = |own: Option<&str>, xdg: Option<&str>, home: Option<&str>| {
        let variable = |name: &str| {
            let value = match name {
                "JAX_CALLABLE_CACHE_DIR" => own,
                "XDG_CACHE_HOME" => xdg,
                _ => None,
            };
            value.map(OsString::from)
        };
        let found = root(variable, home.map(PathBuf::from));
        found.map(|path| path.into_os_string().into_string().unwrap())
    };
    let path = |text: &str| Some(text.to_owned());
    assert_eq!(
        find(Some("/own"), Some("/xdg"), Some("/home")),
        path("/own")
    );
    assert_eq!(find(Some("own"), None, None), path("own"));
    assert_eq!(find(Some(""), Some("/xdg"), Some("/home")), None);
    assert_eq!(
        find(None, Some("/xdg"), Some("/home")),
        path("/xdg/jax-callable")
    );
    for xdg in [None, Some(""), Some("relative")] {
        assert_eq!(
            find(None, xdg, Some("/home")),
            path("/home/.cache/jax-callable")
        );
        assert_eq!(find(None, xdg, Some("")), None);
        assert_eq!(find(None, xdg, None), None);
    }
}
