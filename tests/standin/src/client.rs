//! The tests' view of the loaded library.

use libloading::Library;
use std::sync::OnceLock;

/// How many objects of each kind the driver has.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Live {
    /// Streams, but for those with work that were destroyed.
    pub streams: u64,
    /// Events.
    pub events: u64,
    /// Allocations of device memory, those of graphs included.
    pub allocations: u64,
    /// Graphs.
    pub graphs: u64,
    /// Executable graphs.
    pub executables: u64,
    /// User objects, held by users, graphs, or graphs in flight.
    pub objects: u64,
    /// Modules.
    pub modules: u64,
    /// Captures under way.
    pub captures: u64,
}

/// The stand-in, loaded.
#[derive(Debug)]
pub struct Driver(Library);

macro_rules! controls {
    ($($(#[$doc:meta])* $name:ident = $symbol:literal ($($arg:ident: $ty:ty),*) $(-> $out:ty)?;)*) => {
        impl Driver {$(
            $(#[$doc])*
            pub fn $name(&self, $($arg: $ty),*) $(-> $out)? {
                type Function = extern "C" fn($($ty),*) $(-> $out)?;
                // SAFETY: the library has this function of this type, built from this source.
                let function = unsafe { self.0.get::<Function>($symbol) };
                function.expect("the stand-in has it")($($arg),*)
            }
        )*}
    };
}

controls! {
    /// Runs all work that was queued.
    finish = b"standin_finish" ();
    /// Lets queued work run at random moments that follow from a seed; with 0, which is so at first,
    /// work runs when somebody waits for it.
    set_seed = b"standin_seed" (seed: u64);
    /// Whether a captured graph gets the handle of the one that was destroyed last, as a driver's may;
    /// not so at first.
    reuse_graphs = b"standin_reuse_graphs" (reuses: bool);
    /// Whether functions seem to have no parameters, as those do that a driver knows too little of; not
    /// so at first.
    hide_params = b"standin_hide_params" (hides: bool);
    /// Lets the call of this number fail with this code of CUDA's (1, 2, 719 or 801), counted from 0
    /// and from now on; with `u64::MAX`, none.
    arm = b"standin_arm" (at: u64, code: u32);
    /// Lets one call in so many fail, chosen by a seed.
    arm_random = b"standin_arm_random" (seed: u64, one_in: usize);
    /// How many calls were made since the last arming.
    calls = b"standin_calls" () -> u64;
    /// Whether this thread's calls are neither counted nor fail.
    set_exempt = b"standin_exempt" (is_exempt: bool);
    /// Opens a device as XLA does: the handle of a stream that nobody else may capture.
    open = b"standin_open" (device: usize) -> u64;
    /// Ends such a stream.
    close = b"standin_close" (stream: u64);
    /// Allocates bytes on a device: the address.
    allocate = b"standin_allocate" (device: usize, bytes: usize) -> u64;
    /// Frees them.
    free = b"standin_free" (address: u64);
    /// Waits for a stream.
    wait = b"standin_wait" (stream: u64);
    /// The handle of a device's primary context.
    context = b"standin_context" (device: usize) -> u64;
    /// How often that is retained.
    retained = b"standin_retained" (device: usize) -> u64;
}

impl Driver {
    /// Loads the library into this process, in which nothing has looked for the driver yet.
    pub fn load() -> &'static Driver {
        static DRIVER: OnceLock<Driver> = OnceLock::new();
        DRIVER.get_or_init(|| {
            let program = std::env::current_exe().expect("this program has a path");
            // Tests are in `deps`, where Cargo builds the library as well.
            let path = program.with_file_name("libstandin.so");
            // SAFETY: it was built from this crate, and does nothing when it is loaded.
            let library = unsafe { Library::new(&path) };
            Driver(library.unwrap_or_else(|error| panic!("{}: {error}", path.display())))
        })
    }

    /// What is alive.
    pub fn live(&self) -> Live {
        let mut live = Live::default();
        type Function = extern "C" fn(&mut Live);
        // SAFETY: as in `controls!`.
        let function = unsafe { self.0.get::<Function>(b"standin_live") };
        function.expect("the stand-in has it")(&mut live);
        live
    }

    /// What was misused since the last time, one a line.
    pub fn misuses(&self) -> String {
        let mut text = vec![0; 1 << 16];
        type Function = unsafe extern "C" fn(*mut u8, usize) -> usize;
        // SAFETY: as in `controls!`; there is this room.
        let len = unsafe {
            let function = self.0.get::<Function>(b"standin_misuses");
            function.expect("the stand-in has it")(text.as_mut_ptr(), text.len())
        };
        text.truncate(len);
        String::from_utf8_lossy(&text).into_owned()
    }

    /// How many of the calls since the last arming were of the function of this name.
    pub fn calls_of(&self, name: &str) -> u64 {
        type Function = unsafe extern "C" fn(*const u8, usize) -> u64;
        // SAFETY: as in `controls!`; the text has this length.
        unsafe {
            let function = self.0.get::<Function>(b"standin_calls_of");
            function.expect("the stand-in has it")(name.as_ptr(), name.len())
        }
    }

    /// How many calls failed since the last arming, and the name of the last of them.
    pub fn failures(&self) -> (u64, String) {
        let mut name = [0; 64];
        type Function = extern "C" fn(&mut [u8; 64]) -> u64;
        // SAFETY: as in `controls!`.
        let function = unsafe { self.0.get::<Function>(b"standin_failures") };
        let failures = function.expect("the stand-in has it")(&mut name);
        let end = name.iter().position(|&byte| byte == 0).unwrap_or(0);
        (failures, String::from_utf8_lossy(&name[..end]).into_owned())
    }

    /// Does something on this thread whose calls are neither counted nor fail.
    pub fn exempt<T>(&self, work: impl FnOnce() -> T) -> T {
        self.set_exempt(true);
        let value = work();
        self.set_exempt(false);
        value
    }
}
