//! The cache and other processes: killed while they write, writing at once, out of room.

use super::tests::{Folder, files, get, key, set_age};
use super::*;
use std::collections::HashSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;

/// A forked process, which is killed if it takes too long.
struct Forked(libc::pid_t);

/// How a process ended, or that it stands still.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Status {
    Exited(i32),
    Killed(i32),
    Stopped,
}

impl Forked {
    /// Exits with 0, or 1 if `body` panics.
    fn start(body: impl FnOnce()) -> Forked {
        // SAFETY: the child is this thread alone. It opens files, and allocates, which the C
        // library allows after a fork; what it might wait for in vain ends with the alarm.
        unsafe {
            match libc::fork() {
                -1 => panic!("{}", io::Error::last_os_error()),
                0 => {
                    libc::alarm(60);
                    let ended = catch_unwind(AssertUnwindSafe(body));
                    libc::_exit(ended.is_err().into())
                }
                child => Forked(child),
            }
        }
    }

    fn wait(&self) -> Status {
        let mut status = 0;
        // SAFETY: this is our child, which was not waited for to its end.
        assert_eq!(unsafe { libc::waitpid(self.0, &mut status, 0) }, self.0);
        if libc::WIFSTOPPED(status) {
            Status::Stopped
        } else if libc::WIFSIGNALED(status) {
            Status::Killed(libc::WTERMSIG(status))
        } else {
            Status::Exited(libc::WEXITSTATUS(status))
        }
    }

    fn kill(&self) -> Status {
        // SAFETY: as above.
        unsafe { libc::kill(self.0, libc::SIGKILL) };
        self.wait()
    }
}

const CANNOT_TRACE: i32 = 77;

/// Kills a process that runs `body` before or after one of its system calls: the `step`-th such
/// moment. Or how it ended, if it has fewer.
fn killed_at(step: usize, body: impl FnOnce()) -> Status {
    let child = Forked::start(|| {
        // SAFETY: asks its parent to watch, and waits for it.
        unsafe {
            let null = ptr::null_mut::<libc::c_void>();
            if libc::ptrace(libc::PTRACE_TRACEME, 0, null, null) == -1 {
                libc::_exit(CANNOT_TRACE);
            }
            libc::raise(libc::SIGSTOP);
        }
        body();
    });
    let mut status = child.wait();
    for _ in 0..step {
        if status != Status::Stopped {
            return status;
        }
        let null = ptr::null_mut::<libc::c_void>();
        // SAFETY: it is our child, and stopped.
        unsafe { libc::ptrace(libc::PTRACE_SYSCALL, child.0, null, null) };
        status = child.wait();
    }
    match status {
        Status::Stopped => child.kill(),
        ended => ended,
    }
}

const KILLED: Status = Status::Killed(libc::SIGKILL);

pub(super) fn unfinished(cache: &Cache) -> Vec<PathBuf> {
    let names = files(cache).into_iter();
    let names = names.filter(|name| name.ends_with(UNFINISHED));
    names.map(|name| cache.folder.join(name)).collect()
}

#[test]
fn killed_at_every_step() {
    type Start = fn(&Cache);
    let starts: [(&str, Start); 3] = [
        ("no folder", |_| {}),
        ("a damaged entry", |cache| {
            get(cache, key("a"), b"abc");
            fs::write(cache.path(key("a")), "damaged").unwrap();
        }),
        ("a full folder", |cache| {
            for i in 0..3 {
                get(cache, key(&i.to_string()), &[i; 100]);
            }
        }),
    ];
    let (mut killed, mut half_written) = (0, 0);
    for (name, start) in starts {
        for step in 0.. {
            let folder = Folder::new();
            let entry = 100 + 2 * HASH as u64;
            let cache = || Cache::new(folder.0.join("cuda"), 3 * entry);
            start(&cache());
            let writer = cache();
            let status = killed_at(step, || {
                get(&writer, key("a"), &[7; 100]);
            });
            if status == Status::Exited(CANNOT_TRACE) {
                eprintln!("skipped: this system lets no process watch another");
                return;
            }
            let left = cache().folder.exists();
            let left = if left { unfinished(&cache()) } else { vec![] };
            assert!(left.len() <= 1, "{name}, {step}: {left:?}");
            // What comes next is right, and stored.
            let (found, compiled) = get(&cache(), key("a"), &[7; 100]);
            assert_eq!(found, [7; 100], "{name}, {step}");
            assert_eq!(get(&cache(), key("a"), b"?"), (vec![7; 100], false));
            for path in &left {
                half_written += 1;
                if path.exists() {
                    set_age(path, 2 * ABANDONED);
                }
            }
            get(&cache(), key("z"), b"another");
            assert!(unfinished(&cache()).is_empty(), "{name}, {step}");
            if status != KILLED {
                assert_eq!((status, compiled), (Status::Exited(0), false));
                assert!(step > 20, "{name}: only {step} steps");
                break;
            }
            killed += 1;
        }
    }
    assert!(half_written > 0);
    eprintln!("killed at every step: {killed} kills, {half_written} left an unfinished file");
}

/// Numbers that look random.
fn next(seed: &mut u64) -> u64 {
    *seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1);
    *seed >> 33
}

#[test]
fn killed_at_any_moment_while_another_process_reads() {
    const KEYS: u8 = 4;
    let kills = std::env::var("CACHE_KILLS").map_or(150, |kills| kills.parse().unwrap());
    let folder = Folder::new();
    let bytes = |i: u8| vec![i; 500_000 + usize::from(i)];
    let name = |i: u8| key(&i.to_string());
    let entries: Vec<_> = (0..KEYS).map(|i| seal(name(i), &bytes(i))).collect();
    let limit = 8 * entries[0].len() as u64;
    let cache = || Cache::new(folder.0.join("cuda"), limit);
    let writer = cache();
    // The folder is there, however early the first writer is killed.
    writer.store(name(0), &entries[0]).unwrap();
    let mut seed = 1;
    let (mut most, mut read, mut partial) = (0, 0, HashSet::new());
    for _ in 0..kills {
        let child = Forked::start(|| {
            for i in (0..entries.len()).cycle() {
                writer.store(name(i as u8), &entries[i]).unwrap();
            }
        });
        let before = SystemTime::now();
        let time = Duration::from_micros(next(&mut seed) % 6000);
        while before.elapsed().is_ok_and(|elapsed| elapsed < time) {
            // An entry is whole whenever it is there.
            let i = next(&mut seed) as usize % entries.len();
            if let Ok(found) = fs::read(writer.path(name(i as u8))) {
                assert!(found == entries[i], "{} bytes", found.len());
                read += 1;
            }
        }
        assert_eq!(child.kill(), KILLED);
        let mut size = 0;
        for file in files(&cache()) {
            let len = fs::metadata(writer.folder.join(&file)).unwrap().len();
            size += len;
            if file.ends_with(UNFINISHED) && (1..entries[0].len() as u64).contains(&len) {
                partial.insert(file);
            }
        }
        most = most.max(unfinished(&cache()).len());
        assert!(size <= limit, "{size} bytes");
    }
    assert!(most > 0 && read > 0);
    for path in unfinished(&cache()) {
        set_age(&path, 2 * ABANDONED);
    }
    for i in 0..KEYS {
        assert_eq!(get(&cache(), name(i), &bytes(i)).0, bytes(i));
    }
    get(&cache(), key("another"), b"abc");
    assert!(unfinished(&cache()).is_empty());
    eprintln!(
        "killed at any moment: {kills} kills, {} left a part of an entry, {most} unfinished files at \
         once at most, {read} entries read meanwhile",
        partial.len()
    );
}

#[test]
fn processes_that_write_read_evict_and_damage_at_once() {
    let folder = Folder::new();
    let bytes = |i: u64| vec![i as u8; 200 * (i as usize + 1)];
    let cache = || Cache::new(folder.0.join("cuda"), 4000);
    fs::create_dir(folder.0.join("cuda")).unwrap();
    let user = |mut seed: u64| {
        Forked::start(move || {
            let cache = cache();
            for _ in 0..300 {
                let i = next(&mut seed) % 8;
                assert_eq!(get(&cache, key(&i.to_string()), &bytes(i)).0, bytes(i));
            }
        })
    };
    let users = [user(1), user(2), user(3)];
    let vandal = Forked::start(|| {
        let (cache, mut seed) = (cache(), 4);
        for _ in 0..2000 {
            let path = cache.path(key(&(next(&mut seed) % 8).to_string()));
            let _ = match next(&mut seed) % 3 {
                0 => fs::remove_file(path),
                1 => fs::write(path, "damaged"),
                _ => OpenOptions::new()
                    .write(true)
                    .open(path)
                    .and_then(|file| file.set_len(100)),
            };
        }
    });
    for process in users.iter().chain([&vandal]) {
        assert_eq!(process.wait(), Status::Exited(0));
    }
    assert!(unfinished(&cache()).is_empty());
}

/// Runs `body` in a process that cannot make a file longer than `limit`, as on a full disk.
fn with_file_limit(limit: usize, body: impl FnOnce()) {
    let child = Forked::start(|| {
        let limit = libc::rlimit {
            rlim_cur: limit as libc::rlim_t,
            rlim_max: limit as libc::rlim_t,
        };
        // SAFETY: changes this process alone. Without the signal, writing is an error.
        unsafe {
            libc::signal(libc::SIGXFSZ, libc::SIG_IGN);
            assert_eq!(libc::setrlimit(libc::RLIMIT_FSIZE, &limit), 0);
        }
        body();
    });
    assert_eq!(child.wait(), Status::Exited(0));
}

#[test]
fn writing_fails_after_every_length() {
    let bytes: Vec<u8> = (0..50).collect();
    let len = bytes.len() + 2 * HASH;
    for limit in 0..=len {
        let folder = Folder::new();
        let cache = folder.cache();
        with_file_limit(limit, || {
            for _ in 0..2 {
                assert_eq!(get(&cache, key("a"), &bytes).0, bytes);
            }
        });
        let stored = files(&cache).len();
        assert_eq!(stored, usize::from(limit == len), "{limit}");
        assert!(unfinished(&cache).is_empty());
        assert_eq!(get(&cache, key("a"), &bytes), (bytes.clone(), stored == 0));
    }
}
