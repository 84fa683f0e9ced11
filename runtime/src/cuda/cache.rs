//! Compiled modules on disk, so that a process does not compile again what another one has.
//!
//! An entry is a file of the compiled bytes, its key and a checksum of both, under a name
//! made from the key. The key stands for everything that decides what the compiler makes.
//! Entries are renamed into place whole, and believed only if the checksum is right: writers
//! need no locks, and may be killed. No failure here is an error: it costs a compilation, and
//! a line on standard error.

use sha2::{Digest, Sha256};
use std::ffi::{OsStr, OsString};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::PathBuf;
use std::process;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Once, OnceLock};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// What a folder of entries may hold, in bytes: thousands of modules.
const LIMIT: u64 = 256 << 20;

/// How old an unfinished file is when its writer must be gone.
const ABANDONED: Duration = Duration::from_secs(3600);

const ENTRY: &str = "cubin";
const UNFINISHED: &str = "tmp";

/// SHA-256 over all that a compilation depends on, and over the form of an entry.
#[derive(Clone, Copy)]
pub(super) struct Key([u8; 32]);

const HASH: usize = size_of::<Key>();

impl Key {
    /// The key of a list of texts; where one ends and the next begins counts.
    pub(super) fn new<'a>(parts: impl IntoIterator<Item = &'a str>) -> Key {
        let mut hash = Sha256::new();
        hash.update("jax-callable module 1");
        for part in parts {
            hash.update((part.len() as u64).to_le_bytes());
            hash.update(part);
        }
        Key(hash.finalize().into())
    }

    fn hex(self) -> String {
        self.0.iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

/// A folder of entries.
pub(super) struct Cache {
    folder: PathBuf,
    limit: u64,
    warned: Once,
}

impl Cache {
    /// The cache that the environment asks for, none if it is off.
    pub(super) fn of_environment() -> Option<&'static Cache> {
        static CACHE: OnceLock<Option<Cache>> = OnceLock::new();
        let cache = CACHE.get_or_init(|| {
            let root = root(|name| std::env::var_os(name), std::env::home_dir())?;
            Some(Cache::new(root.join("cuda"), LIMIT))
        });
        cache.as_ref()
    }

    fn new(folder: PathBuf, limit: u64) -> Cache {
        Cache {
            folder,
            limit,
            warned: Once::new(),
        }
    }

    /// The bytes of a key from the disk, or from `compile`, which are then stored.
    pub(super) fn get_or<E>(
        &self,
        key: Key,
        compile: impl FnOnce() -> Result<Vec<u8>, E>,
    ) -> Result<Vec<u8>, E> {
        if let Some(bytes) = self.load(key) {
            return Ok(bytes);
        }
        let bytes = compile()?;
        if let Err(error) = self.store(key, &seal(key, &bytes)) {
            self.warned
                .call_once(|| eprintln!("{}", self.warning(&error)));
        }
        Ok(bytes)
    }

    fn warning(&self, error: &io::Error) -> String {
        format!(
            "jax-callable: compiled kernels cannot be kept in {}: {error}. Every process compiles \
             them again. Set JAX_CALLABLE_CACHE_DIR to a folder that can be written, or to \
             nothing to keep none",
            self.folder.display()
        )
    }

    fn path(&self, key: Key) -> PathBuf {
        self.folder.join(key.hex()).with_extension(ENTRY)
    }

    fn load(&self, key: Key) -> Option<Vec<u8>> {
        let path = self.path(key);
        // Opening something else than a file, such as a pipe, could wait for ever.
        let found = fs::metadata(&path).ok()?;
        if !found.is_file() || found.len() > self.limit {
            return None;
        }
        let bytes = unseal(key, fs::read(&path).ok()?)?;
        // Tells `make_room` that it is used. On a disk that is read-only nobody cleans either.
        let now = SystemTime::now();
        let _ = File::open(&path).and_then(|file| file.set_modified(now));
        Some(bytes)
    }

    fn store(&self, key: Key, entry: &[u8]) -> io::Result<()> {
        if entry.len() as u64 > self.limit {
            return Ok(());
        }
        fs::create_dir_all(&self.folder)?;
        self.make_room(entry.len() as u64);
        let unfinished = self.folder.join(unfinished_name());
        let mut file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .open(&unfinished)?;
        let written = file.write_all(entry).and_then(|()| {
            match fs::rename(&unfinished, self.path(key)) {
                // Somebody needed the room.
                Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
                renamed => renamed,
            }
        });
        if written.is_err() {
            let _ = fs::remove_file(&unfinished);
        }
        written
    }

    /// Removes what killed writers left, and the files that were not used for longest, until
    /// `len` bytes fit into the limit. Other processes may do the same.
    fn make_room(&self, len: u64) {
        let Ok(files) = fs::read_dir(&self.folder) else {
            return;
        };
        let now = SystemTime::now();
        let mut kept = Vec::new();
        for file in files.flatten() {
            let path = file.path();
            // Of a link itself, not of what it leads to.
            let Ok(metadata) = file.metadata() else {
                continue;
            };
            let used = metadata.modified().unwrap_or(UNIX_EPOCH);
            match path.extension().and_then(OsStr::to_str) {
                Some(UNFINISHED) if now.duration_since(used).is_ok_and(|age| age > ABANDONED) => {
                    let _ = fs::remove_file(path);
                }
                // Unfinished ones count: writers may be killed faster than that.
                Some(ENTRY | UNFINISHED) if metadata.is_file() => {
                    kept.push((used, metadata.len(), path));
                }
                _ => {}
            }
        }
        kept.sort();
        let mut size = len + kept.iter().map(|(_, size, _)| size).sum::<u64>();
        for (_, file, path) in kept {
            if size <= self.limit {
                break;
            }
            let _ = fs::remove_file(path);
            size -= file;
        }
    }
}

/// The folder of all of this crate's caches.
fn root(variable: impl Fn(&str) -> Option<OsString>, home: Option<PathBuf>) -> Option<PathBuf> {
    if let Some(folder) = variable("JAX_CALLABLE_CACHE_DIR") {
        return (!folder.is_empty()).then(|| folder.into());
    }
    // A relative path is to be ignored, says the specification of this variable.
    let cache = variable("XDG_CACHE_HOME")
        .map(PathBuf::from)
        .filter(|folder| folder.is_absolute());
    let cache = cache.or_else(|| {
        home.filter(|home| home.is_absolute())
            .map(|home| home.join(".cache"))
    })?;
    Some(cache.join("jax-callable"))
}

/// A name that no other writer has: processes on several machines may share the folder.
fn unfinished_name() -> String {
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let time = SystemTime::now().duration_since(UNIX_EPOCH);
    let time = time.map_or(0, |time| time.as_nanos());
    format!("{}-{time}-{number}.{UNFINISHED}", process::id())
}

/// An entry. The bytes come first, so that tools for binaries can read it.
fn seal(key: Key, bytes: &[u8]) -> Vec<u8> {
    let mut entry = [bytes, &key.0].concat();
    let checksum = Sha256::digest(&entry);
    entry.extend_from_slice(&checksum);
    entry
}

/// The bytes of an entry, if it is whole and that of the key.
fn unseal(key: Key, mut entry: Vec<u8>) -> Option<Vec<u8>> {
    let (rest, checksum) = entry.split_last_chunk::<HASH>()?;
    let (bytes, found) = rest.split_last_chunk::<HASH>()?;
    if *found != key.0 || Sha256::digest(rest)[..] != checksum[..] {
        return None;
    }
    let len = bytes.len();
    entry.truncate(len);
    Some(entry)
}

#[cfg(test)]
#[path = "cache_tests.rs"]
mod tests;

#[cfg(all(test, target_os = "linux"))]
#[path = "cache_faults.rs"]
mod faults;

#[cfg(all(test, target_os = "linux"))]
#[path = "cache_disks.rs"]
mod disks;
