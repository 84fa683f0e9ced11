//! API tables of every version, as XLA hands them to handlers.

use super::host::{Context, HostError, Schedule, State, Task, lock};
use super::sys;
use std::collections::HashMap;
use std::ffi::{CStr, CString, c_void};
use std::ptr;
use std::sync::Mutex;

/// The API's minor versions that tables exist for.
pub(crate) const MINOR_VERSIONS: [i32; 5] = [1, 2, 3, 4, 5];

/// The API table of a minor version.
pub(crate) fn table(minor: i32) -> &'static sys::Api {
    static TABLES: [sys::Api; 5] = [api::<1>(), api::<2>(), api::<3>(), api::<4>(), api::<5>()];
    let index = MINOR_VERSIONS.iter().position(|&version| version == minor);
    &TABLES[index.expect("a version that there is a table for")]
}

/// A table that no XLA known to us has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OtherTable {
    /// Of a version to come, with all that 0.5 has.
    Newer,
    /// As short as before JAX 0.6.0.
    Short,
    /// Of major version 1.
    Major,
    /// Without the function that registers types.
    NoTypes,
}

impl OtherTable {
    pub(crate) fn get(self) -> &'static sys::Api {
        static NEWER: sys::Api = api::<99>();
        static SHORT: sys::Api = sys::Api {
            struct_size: 88,
            ..api::<1>()
        };
        static MAJOR: sys::Api = sys::Api {
            api_version: sys::ApiVersion {
                major_version: 1,
                ..api::<0>().api_version
            },
            ..api::<0>()
        };
        static NO_TYPES: sys::Api = sys::Api {
            type_register: None,
            ..api::<5>()
        };
        match self {
            OtherTable::Newer => &NEWER,
            OtherTable::Short => &SHORT,
            OtherTable::Major => &MAJOR,
            OtherTable::NoTypes => &NO_TYPES,
        }
    }
}

// SAFETY: the pointers in a table are functions or null.
unsafe impl Sync for sys::Api {}

const fn api<const MINOR: i32>() -> sys::Api {
    sys::Api {
        struct_size: size_of::<sys::Api>(),
        extension_start: ptr::null_mut(),
        api_version: sys::ApiVersion {
            struct_size: size_of::<sys::ApiVersion>(),
            extension_start: ptr::null_mut(),
            major_version: 0,
            minor_version: MINOR,
        },
        internal_api: ptr::null(),
        error_create: Some(error_create),
        error_get_message: Some(error_get_message),
        error_destroy: Some(error_destroy),
        handler_register: ptr::null(),
        stream_get: Some(stream_get),
        type_register: Some(type_register::<MINOR>),
        execution_context_get: ptr::null(),
        state_set: Some(state_set::<MINOR>),
        state_get: Some(state_get::<MINOR>),
        device_memory_allocate: ptr::null(),
        device_memory_free: ptr::null(),
        thread_pool_schedule: Some(thread_pool_schedule),
        thread_pool_num_threads: Some(thread_pool_num_threads),
        future_create: ptr::null(),
        future_set_available: ptr::null(),
        future_set_error: ptr::null(),
        run_id_get: Some(run_id_get),
        device_ordinal_get: Some(device_ordinal_get),
    }
}

fn error(code: i32, message: &str) -> *mut sys::Error {
    let message = CString::new(message).unwrap_or_default();
    Box::into_raw(Box::new(HostError { code, message })).cast()
}

fn check_size(what: &str, expected: usize, got: usize) -> Result<(), *mut sys::Error> {
    if got >= expected {
        return Ok(());
    }
    let message = format!("Unexpected {what} size: expected {expected}, got {got}");
    Err(error(3, &message))
}

macro_rules! check_size {
    ($what:literal, $expected:expr, $args:expr) => {
        // SAFETY: every argument struct begins with its size.
        if let Err(error) = check_size($what, $expected, unsafe { $args.cast::<usize>().read() }) {
            return error;
        }
    };
}

unsafe extern "C" fn error_create(args: *mut sys::ErrorCreateArgs) -> *mut sys::Error {
    check_size!("XLA_FFI_Error_Create_Args", 28, args);
    // SAFETY: the caller gives valid arguments, the message NUL-terminated.
    let (code, message) = unsafe { ((*args).errc, CStr::from_ptr((*args).message)) };
    error(code, &message.to_string_lossy())
}

unsafe extern "C" fn error_get_message(args: *mut sys::ErrorGetMessageArgs) {
    // SAFETY: the caller gives valid arguments and a live error of these tables.
    unsafe {
        let error = &*(*args).error.cast::<HostError>();
        (*args).message = error.message.as_ptr();
    }
}

unsafe extern "C" fn error_destroy(args: *mut sys::ErrorDestroyArgs) {
    // SAFETY: the caller gives valid arguments and its own error.
    drop(unsafe { Box::from_raw((*args).error.cast::<HostError>()) });
}

/// Registered types: by version, for each table is a registry of its own, and name.
static TYPES: Mutex<Option<HashMap<(i32, String), i64>>> = Mutex::new(None);
static DELETERS: Mutex<Vec<(i32, Option<unsafe extern "C" fn(*mut c_void)>)>> =
    Mutex::new(Vec::new());

unsafe extern "C" fn type_register<const MINOR: i32>(
    args: *mut sys::TypeRegisterArgs,
) -> *mut sys::Error {
    let expected = if MINOR >= 2 { 48 } else { 40 };
    check_size!("XLA_FFI_Type_Register_Args", expected, args);
    // SAFETY: the caller gives valid arguments of this version's layout.
    let (name, type_id, deleter) = unsafe {
        let name = std::slice::from_raw_parts((*args).name.ptr, (*args).name.len);
        let deleter = if MINOR >= 2 {
            (*args).type_info.as_ref().map(|info| info.deleter)
        } else {
            None
        };
        (
            String::from_utf8_lossy(name).into_owned(),
            (*args).type_id,
            deleter,
        )
    };
    let mut types = lock(&TYPES);
    let types = types.get_or_insert_default();
    if types.contains_key(&(MINOR, name.clone())) {
        return error(13, &format!("Type name {name} already registered"));
    }
    let mut deleters = lock(&DELETERS);
    deleters.push((MINOR, deleter));
    let id = deleters.len() as i64;
    types.insert((MINOR, name), id);
    // SAFETY: the caller gives a place for the id.
    unsafe { (*type_id).type_id = id };
    ptr::null_mut()
}

unsafe extern "C" fn state_set<const MINOR: i32>(args: *mut c_void) -> *mut sys::Error {
    let expected = if MINOR == 2 { 40 } else { 48 };
    check_size!("XLA_FFI_State_Set_Args", expected, args);
    // SAFETY: the caller gives valid arguments of this version's layout.
    let (ctx, type_id, state, deleter) = unsafe {
        match MINOR {
            ..=1 => {
                let args = &*args.cast::<sys::StateSetArgs01>();
                (args.ctx, args.type_id, args.state, Some(args.deleter))
            }
            2 => {
                let args = &*args.cast::<sys::StateArgs02>();
                (args.ctx, args.type_id, args.state, None)
            }
            _ => {
                let args = &*args.cast::<sys::StateArgs03>();
                if args.stage != sys::stage::INSTANTIATE {
                    return error(3, "State_Set: only INSTANTIATE has a state here");
                }
                (args.ctx, args.type_id, args.state, None)
            }
        }
    };
    // SAFETY: contexts of these tables are `Context`s, and the id is the caller's.
    let (context, type_id) = unsafe { (&*ctx.cast::<Context>(), (*type_id).type_id) };
    let registered = lock(&DELETERS).get(type_id as usize - 1).copied();
    let deleter = match registered {
        Some((minor, registered)) if minor == MINOR => registered.or(deleter),
        _ => return error(3, "State_Set: the type id is not of this registry"),
    };
    let Some(deleter) = deleter.filter(|_| !state.is_null()) else {
        return error(3, "State_Set: a null state or no deleter");
    };
    let mut slot = lock(&context.state);
    if slot.is_some() {
        return error(9, "State is already set");
    }
    *slot = Some(State {
        type_id,
        state,
        deleter,
    });
    ptr::null_mut()
}

unsafe extern "C" fn state_get<const MINOR: i32>(args: *mut c_void) -> *mut sys::Error {
    let expected = if MINOR >= 3 { 48 } else { 40 };
    check_size!("XLA_FFI_State_Get_Args", expected, args);
    // SAFETY: the caller gives valid arguments of this version's layout.
    let (ctx, type_id, out) = unsafe {
        if MINOR >= 3 {
            let args = &mut *args.cast::<sys::StateArgs03>();
            (args.ctx, args.type_id, &mut args.state)
        } else {
            let args = &mut *args.cast::<sys::StateArgs02>();
            (args.ctx, args.type_id, &mut args.state)
        }
    };
    // SAFETY: contexts of these tables are `Context`s, and the id is the caller's.
    let (context, type_id) = unsafe { (&*ctx.cast::<Context>(), (*type_id).type_id) };
    match &*lock(&context.state) {
        None => error(5, "State is not set"),
        Some(state) if state.type_id != type_id => error(3, "State has another type"),
        Some(state) => {
            *out = state.state;
            ptr::null_mut()
        }
    }
}

unsafe extern "C" fn thread_pool_schedule(
    args: *mut sys::ThreadPoolScheduleArgs,
) -> *mut sys::Error {
    check_size!("XLA_FFI_ThreadPool_Schedule_Args", 40, args);
    // SAFETY: the caller gives valid arguments, and contexts here are `Context`s.
    let (context, task) = unsafe {
        let args = &*args;
        let task = Task {
            run: args.task,
            data: args.data,
        };
        (&*args.ctx.cast::<Context>(), task)
    };
    match context.schedule {
        Schedule::Refuse => return error(14, "the thread pool is gone"),
        Schedule::Late => lock(&context.late).push(task),
        Schedule::Spawn => {
            let thread = std::thread::spawn(move || {
                let task = task;
                // SAFETY: each task is run once.
                unsafe { (task.run)(task.data) }
            });
            lock(&context.threads).push(thread);
        }
    }
    ptr::null_mut()
}

unsafe extern "C" fn thread_pool_num_threads(
    args: *mut sys::ThreadPoolNumThreadsArgs,
) -> *mut sys::Error {
    check_size!("XLA_FFI_ThreadPool_NumThreads_Args", 32, args);
    // SAFETY: the caller gives valid arguments, and contexts here are `Context`s.
    unsafe { *(*args).num_threads = (*(*args).ctx.cast::<Context>()).num_threads };
    ptr::null_mut()
}

unsafe extern "C" fn stream_get(args: *mut sys::StreamGetArgs) -> *mut sys::Error {
    check_size!("XLA_FFI_Stream_Get_Args", 32, args);
    // SAFETY: the caller gives valid arguments, and contexts here are `Context`s.
    let (args, context) = unsafe { (&mut *args, &*(*args).ctx.cast::<Context>()) };
    if context.stream.is_null() {
        return error(12, "XLA FFI GPU context is not available");
    }
    args.stream = context.stream;
    ptr::null_mut()
}

unsafe extern "C" fn run_id_get(args: *mut sys::RunIdGetArgs) -> *mut sys::Error {
    check_size!("XLA_FFI_RunId_Get_Args", 32, args);
    // SAFETY: the caller gives valid arguments, and contexts here are `Context`s.
    unsafe { (*args).run_id = (*(*args).ctx.cast::<Context>()).run_id };
    ptr::null_mut()
}

unsafe extern "C" fn device_ordinal_get(args: *mut sys::DeviceOrdinalGetArgs) -> *mut sys::Error {
    check_size!("XLA_FFI_DeviceOrdinal_Get_Args", 28, args);
    // SAFETY: the caller gives valid arguments, and contexts here are `Context`s.
    unsafe { (*args).device_ordinal = (*(*args).ctx.cast::<Context>()).device_ordinal };
    ptr::null_mut()
}
