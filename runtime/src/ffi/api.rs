//! Calls into XLA's API table.

use super::sys;
use crate::error::{Code, Error, Result};
use std::ffi::{CStr, CString, c_void};
use std::ptr;

/// XLA's API table, checked once for its size and version.
#[derive(Clone, Copy)]
pub(crate) struct Api<'a>(&'a sys::Api);

impl<'a> Api<'a> {
    /// Checks a table.
    ///
    /// # Safety
    /// `table` is not null and points to an `XLA_FFI_Api` of at least the size that it
    /// says, unchanged during `'a`.
    pub(crate) unsafe fn new(table: *const sys::Api) -> Result<Api<'a>> {
        // SAFETY: `struct_size` and `api_version` are in every version of the table, at
        // these places; the rest is only borrowed once the size is known.
        let (size, version) = unsafe { ((*table).struct_size, (*table).api_version) };
        if version.major_version != 0 || size < size_of::<sys::Api>() {
            return Err(Error::failed_precondition(format!(
                "this JAX has XLA FFI API {}.{} with a table of {size} bytes; version 0 with at \
                 least {} bytes is needed, which JAX 0.6.0 and later have",
                version.major_version,
                version.minor_version,
                size_of::<sys::Api>(),
            )));
        }
        // SAFETY: the caller's promise, and the size was just compared.
        Ok(Api(unsafe { &*table }))
    }

    /// Identifies the registry that the table belongs to.
    pub(crate) fn address(self) -> usize {
        ptr::from_ref(self.0).addr()
    }

    pub(crate) fn minor_version(self) -> i32 {
        self.0.api_version.minor_version
    }

    /// Registers the type of our call-site states; `id` and `info` must live for ever.
    pub(crate) fn register_type(self, name: &str, info: &'static sys::TypeInfo) -> Result<i64> {
        let mut id = sys::TypeId { type_id: 0 };
        let with_info = self.minor_version() >= 2;
        let mut args = sys::TypeRegisterArgs {
            struct_size: if with_info {
                sys::TypeRegisterArgs::STRUCT_SIZE
            } else {
                sys::TypeRegisterArgs::STRUCT_SIZE_0_1
            },
            extension_start: ptr::null_mut(),
            name: sys::ByteSpan {
                ptr: name.as_ptr(),
                len: name.len(),
            },
            type_id: &mut id,
            type_info: if with_info { info } else { ptr::null() },
        };
        let register = entry(self.0.type_register, "XLA_FFI_Type_Register")?;
        // SAFETY: the arguments have the layout of this API version and outlive the call.
        self.check(unsafe { register(&mut args) })?;
        Ok(id.type_id)
    }

    /// Gives `state` to XLA, which will call the deleter on it once.
    ///
    /// # Safety
    /// `ctx` is the context of the running INSTANTIATE call, `type_id` was registered
    /// with `deleter`, and `state` is what `deleter` takes.
    pub(crate) unsafe fn set_state(
        self,
        ctx: *mut sys::ExecutionContext,
        type_id: i64,
        state: *mut c_void,
        deleter: unsafe extern "C" fn(*mut c_void),
    ) -> Result<()> {
        let set = entry(self.0.state_set, "XLA_FFI_State_Set")?;
        let type_id = sys::TypeId { type_id };
        let extension_start = ptr::null_mut();
        let error = match self.minor_version() {
            ..=1 => {
                let mut args = sys::StateSetArgs01 {
                    struct_size: size_of::<sys::StateSetArgs01>(),
                    extension_start,
                    ctx,
                    type_id: &type_id,
                    state,
                    deleter,
                };
                // SAFETY: this is the layout of API 0.1, and the caller's promises.
                unsafe { set((&raw mut args).cast()) }
            }
            2 => {
                let mut args = sys::StateArgs02 {
                    struct_size: size_of::<sys::StateArgs02>(),
                    extension_start,
                    ctx,
                    type_id: &type_id,
                    state,
                };
                // SAFETY: this is the layout of API 0.2, and the caller's promises.
                unsafe { set((&raw mut args).cast()) }
            }
            _ => {
                let mut args = sys::StateArgs03 {
                    struct_size: size_of::<sys::StateArgs03>(),
                    extension_start,
                    ctx,
                    stage: sys::stage::INSTANTIATE,
                    type_id: &type_id,
                    state,
                };
                // SAFETY: this is the layout from API 0.3 on, and the caller's promises.
                unsafe { set((&raw mut args).cast()) }
            }
        };
        self.check(error)
    }

    /// The state that INSTANTIATE gave to XLA; not null.
    ///
    /// # Safety
    /// `ctx` is the context of the running call.
    pub(crate) unsafe fn get_state(
        self,
        ctx: *mut sys::ExecutionContext,
        type_id: i64,
    ) -> Result<*mut c_void> {
        let get = entry(self.0.state_get, "XLA_FFI_State_Get")?;
        let type_id = sys::TypeId { type_id };
        let (error, state) = if self.minor_version() >= 3 {
            let mut args = sys::StateArgs03 {
                struct_size: size_of::<sys::StateArgs03>(),
                extension_start: ptr::null_mut(),
                ctx,
                stage: sys::stage::INSTANTIATE,
                type_id: &type_id,
                state: ptr::null_mut(),
            };
            // SAFETY: this is the layout from API 0.3 on, and the caller's promise.
            (unsafe { get((&raw mut args).cast()) }, args.state)
        } else {
            let mut args = sys::StateArgs02 {
                struct_size: size_of::<sys::StateArgs02>(),
                extension_start: ptr::null_mut(),
                ctx,
                type_id: &type_id,
                state: ptr::null_mut(),
            };
            // SAFETY: this is the layout of API 0.1 and 0.2, and the caller's promise.
            (unsafe { get((&raw mut args).cast()) }, args.state)
        };
        self.check(error)?;
        if state.is_null() {
            return Err(Error::internal("XLA returned a null call-site state"));
        }
        Ok(state)
    }

    /// # Safety
    /// `ctx` is the context of the running call.
    pub(crate) unsafe fn num_threads(self, ctx: *mut sys::ExecutionContext) -> Result<i64> {
        let get = entry(
            self.0.thread_pool_num_threads,
            "XLA_FFI_ThreadPool_NumThreads",
        )?;
        let mut num_threads = 0;
        let mut args = sys::ThreadPoolNumThreadsArgs {
            struct_size: sys::ThreadPoolNumThreadsArgs::STRUCT_SIZE,
            extension_start: ptr::null_mut(),
            ctx,
            num_threads: &mut num_threads,
        };
        // SAFETY: the caller's promise; the result is written during the call only.
        self.check(unsafe { get(&mut args) })?;
        Ok(num_threads)
    }

    /// # Safety
    /// `ctx` is the context of the running call, and `task(data)` may be called once,
    /// now or later, on any thread.
    pub(crate) unsafe fn schedule(
        self,
        ctx: *mut sys::ExecutionContext,
        task: unsafe extern "C" fn(*mut c_void),
        data: *mut c_void,
    ) -> Result<()> {
        let schedule = entry(self.0.thread_pool_schedule, "XLA_FFI_ThreadPool_Schedule")?;
        let mut args = sys::ThreadPoolScheduleArgs {
            struct_size: sys::ThreadPoolScheduleArgs::STRUCT_SIZE,
            extension_start: ptr::null_mut(),
            ctx,
            task,
            data,
        };
        // SAFETY: the caller's promises.
        self.check(unsafe { schedule(&mut args) })
    }

    /// The device stream of the running call, whatever the platform calls one.
    ///
    /// # Safety
    /// `ctx` is the context of the running call.
    #[cfg_attr(not(feature = "_cuda"), expect(dead_code, reason = "for devices"))]
    pub(crate) unsafe fn stream(self, ctx: *mut sys::ExecutionContext) -> Result<*mut c_void> {
        let get = entry(self.0.stream_get, "XLA_FFI_Stream_Get")?;
        let mut args = sys::StreamGetArgs {
            struct_size: sys::StreamGetArgs::STRUCT_SIZE,
            extension_start: ptr::null_mut(),
            ctx,
            stream: ptr::null_mut(),
        };
        // SAFETY: the caller's promise.
        self.check(unsafe { get(&mut args) })?;
        Ok(args.stream)
    }

    /// # Safety
    /// `ctx` is the context of the running call.
    pub(crate) unsafe fn device_ordinal(self, ctx: *mut sys::ExecutionContext) -> Result<i32> {
        let get = entry(self.0.device_ordinal_get, "XLA_FFI_DeviceOrdinal_Get")?;
        let mut args = sys::DeviceOrdinalGetArgs {
            struct_size: sys::DeviceOrdinalGetArgs::STRUCT_SIZE,
            extension_start: ptr::null_mut(),
            ctx,
            device_ordinal: 0,
        };
        // SAFETY: the caller's promise.
        self.check(unsafe { get(&mut args) })?;
        Ok(args.device_ordinal)
    }

    /// # Safety
    /// `ctx` is the context of the running call.
    pub(crate) unsafe fn run_id(self, ctx: *mut sys::ExecutionContext) -> Result<i64> {
        let get = entry(self.0.run_id_get, "XLA_FFI_RunId_Get")?;
        let mut args = sys::RunIdGetArgs {
            struct_size: sys::RunIdGetArgs::STRUCT_SIZE,
            extension_start: ptr::null_mut(),
            ctx,
            run_id: 0,
        };
        // SAFETY: the caller's promise.
        self.check(unsafe { get(&mut args) })?;
        Ok(args.run_id)
    }

    /// Turns an error of the API, which is ours to destroy, into a Rust one.
    fn check(self, error: *mut sys::Error) -> Result<()> {
        if error.is_null() {
            return Ok(());
        }
        let mut message = String::from("an error without a message");
        if let Some(get_message) = self.0.error_get_message {
            let mut args = sys::ErrorGetMessageArgs {
                struct_size: sys::ErrorGetMessageArgs::STRUCT_SIZE,
                extension_start: ptr::null_mut(),
                error,
                message: ptr::null(),
            };
            // SAFETY: `error` came from this API and is alive.
            unsafe { get_message(&mut args) };
            if !args.message.is_null() {
                // SAFETY: XLA's messages are NUL-terminated and live as long as the error.
                let text = unsafe { CStr::from_ptr(args.message) };
                message = text.to_string_lossy().into_owned();
            }
        }
        if let Some(destroy) = self.0.error_destroy {
            let mut args = sys::ErrorDestroyArgs {
                struct_size: sys::ErrorDestroyArgs::STRUCT_SIZE,
                extension_start: ptr::null_mut(),
                error,
            };
            // SAFETY: errors that the API returns belong to the caller; used no more.
            unsafe { destroy(&mut args) };
        }
        Err(Error::internal(format!("XLA refused a request: {message}")))
    }
}

fn entry<F>(function: Option<F>, name: &str) -> Result<F> {
    function.ok_or_else(|| {
        Error::failed_precondition(format!("this JAX has no {name}; update JAX and jaxlib"))
    })
}

/// Makes the error that a handler returns. Null, which would mean success, is never
/// returned: without a way to report an error the process ends.
///
/// # Safety
/// `table` is not null and points to an `XLA_FFI_Api` of any version.
pub(crate) unsafe fn create_error(
    table: *const sys::Api,
    code: Code,
    message: &str,
) -> *mut sys::Error {
    let text: String = message
        .chars()
        .map(|c| if c == '\0' { '\u{fffd}' } else { c })
        .collect();
    let text = CString::new(text).unwrap_or_default();
    let mut args = sys::ErrorCreateArgs {
        struct_size: sys::ErrorCreateArgs::STRUCT_SIZE,
        extension_start: ptr::null_mut(),
        message: text.as_ptr(),
        errc: code as i32,
    };
    // SAFETY: `error_create` is at this place in every version of the table.
    let create = unsafe { (*table).error_create };
    let error = match create {
        // SAFETY: XLA copies the message during the call.
        Some(create) => unsafe { create(&mut args) },
        None => ptr::null_mut(),
    };
    if error.is_null() {
        super::entry::fatal(message);
    }
    error
}
