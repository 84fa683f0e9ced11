//! Typed arguments of kernels.

use crate::f8;
use cudarc::driver::{CudaStream, DevicePtr, DevicePtrMut, SyncOnDrop};

/// A value that a kernel takes by value.
///
/// # Safety
/// The type has the same size and layout in CUDA C++, any value of it may be copied to a device,
/// and a struct has no padding, which would hold other bytes in every launch: a graph of our own
/// is compared byte by byte with what its body launches.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be a parameter of a kernel",
    label = "not a number, and not marked as a kernel's",
    note = "numbers and `bool` can; for a `#[repr(C)]` struct that the kernel takes by value, write `unsafe impl cuda::KernelValue`"
)]
pub unsafe trait KernelValue: Copy {}

macro_rules! values {
    ($($ty:ty,)*) => {$(
        // SAFETY: CUDA C++ has this type with this layout.
        unsafe impl KernelValue for $ty {}
    )*};
}

values! { bool, i8, i16, i32, i64, isize, u8, u16, u32, u64, usize, f32, f64, }
values! {
    f8::F8E5M2,
    f8::F8E4M3FN,
    f8::F8E4M3B11FNUZ,
    f8::F8E5M2FNUZ,
    f8::F8E4M3FNUZ,
    f8::F8E4M3,
    f8::F8E3M4,
    f8::F8E8M0FNU,
}
#[cfg(feature = "half")]
values! { half::f16, half::bf16, }
#[cfg(feature = "num-complex")]
values! { num_complex::Complex<f32>, num_complex::Complex<f64>, }

/// What can be given for a kernel's parameter of type `P`: a value for itself; for a
/// `*const T` a reference to anything in device memory that holds `T`, such as
/// [`Array`](super::Array) or `CudaSlice`; for a `*mut T` a mutable one.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be given for a kernel's parameter of type `{P}`",
    label = "expected a value for `{P}`",
    note = "a `*const T` takes `&array`, a `*mut T` takes `&mut array`, with elements of that very `T`; all else is by value"
)]
pub trait KernelArg<P> {
    /// The parameter, and what must live until the launch.
    #[doc(hidden)]
    fn into_param<'s>(self, stream: &'s CudaStream) -> (P, SyncOnDrop<'s>)
    where
        Self: 's;
}

impl<P: KernelValue> KernelArg<P> for P {
    #[inline]
    fn into_param<'s>(self, _: &'s CudaStream) -> (P, SyncOnDrop<'s>)
    where
        Self: 's,
    {
        (self, SyncOnDrop::Record(None))
    }
}

impl<T, S: DevicePtr<T>> KernelArg<*const T> for &S {
    #[inline]
    fn into_param<'s>(self, stream: &'s CudaStream) -> (*const T, SyncOnDrop<'s>)
    where
        Self: 's,
    {
        let (pointer, guard) = self.device_ptr(stream);
        (pointer as *const T, guard)
    }
}

impl<T, S: DevicePtrMut<T>> KernelArg<*mut T> for &mut S {
    #[inline]
    fn into_param<'s>(self, stream: &'s CudaStream) -> (*mut T, SyncOnDrop<'s>)
    where
        Self: 's,
    {
        let (pointer, guard) = self.device_ptr_mut(stream);
        (pointer as *mut T, guard)
    }
}

/// Declares a module of CUDA kernels, from source, PTX or a binary.
///
/// ```
/// # use jax_callable::prelude::*;
/// cuda::module! {
///     /// The kernels of this crate.
///     pub mod kernels = source(
///         r#"extern "C" __global__ void scale(unsigned n, float a, float* x) {
///             unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
///             if (i < n) x[i] *= a;
///         }"#,
///         options = ["--use_fast_math"],
///     );
///     /// x <- a x
///     fn scale(n: u32, a: f32, x: *mut f32);
/// }
/// # fn main() {}
/// ```
///
/// The text comes from:
/// - `source(text)` or `source(text, options = [..])`: CUDA C++, such as
///   `include_str!("kernels.cu")`, compiled by NVRTC for the device that it is loaded on;
/// - `ptx(text)`, such as `include_str!("kernels.ptx")`: compiled by the driver;
/// - `binary(bytes)`, such as `include_bytes!("kernels.cubin")`: a cubin or fatbin.
///
/// Each function is a kernel of that name, in CUDA C++ an `extern "C" __global__ void`.
/// `kernels::scale.launch(cx, config, n, a, &mut x)` queues it on the call's stream. That is
/// `unsafe`: the caller promises that the kernel, so launched, stays within its arrays. What
/// can be given for a parameter says [`KernelArg`](crate::cuda::KernelArg). Where the driver
/// can tell (CUDA 12.4), the sizes of the parameters are compared when the module is loaded.
///
/// A module is loaded once on each device: before the first call of a callable that uses it,
/// which is every one of the crate, or those that name it in `modules = kernels`. It is
/// never unloaded. What is wrong with it is the error of those calls, with NVRTC's or the
/// driver's own text.
#[macro_export]
#[doc(hidden)]
macro_rules! __cuda_module {
    (
        $(#[$meta:meta])*
        $vis:vis mod $name:ident = $image:ident($text:expr $(, options = [$($option:expr),* $(,)?])? $(,)?);
        $(
            $(#[$kernel_meta:meta])*
            fn $kernel:ident($($arg:ident: $ty:ty),* $(,)?);
        )*
    ) => {
        $(#[$meta])*
        #[allow(non_camel_case_types, missing_docs, unreachable_pub, unused_imports)]
        $vis mod $name {
            use super::*;

            /// What `modules = ...` looks for.
            #[doc(hidden)]
            #[allow(dead_code)]
            pub const ID: &str = ::core::module_path!();

            static MODULE: $crate::cuda::Module = $crate::cuda::Module::new(
                ID,
                $crate::cuda::Image::$image($text, &[$($($option),*)?]),
                &[$($crate::cuda::Kernel {
                    name: ::core::stringify!($kernel),
                    params: &[$(::core::mem::size_of::<$ty>()),*],
                }),*],
            );
            $crate::__private::inventory::submit! { $crate::__private::ModuleRegistration(&MODULE) }

            #[allow(dead_code)]
            enum Index { $($kernel),* }

            $(
                $(#[$kernel_meta])*
                #[derive(Clone, Copy, Debug)]
                pub struct $kernel;

                impl $kernel {
                    /// Queues the kernel on the call's stream.
                    ///
                    /// # Safety
                    /// The kernel, so launched, reads and writes only what its arguments
                    /// give it.
                    ///
                    /// # Errors
                    /// If the driver refuses the launch, or the module cannot be loaded.
                    #[allow(clippy::too_many_arguments)]
                    pub unsafe fn launch(
                        self,
                        cx: &$crate::cuda::Context,
                        config: $crate::cuda::LaunchConfig,
                        $($arg: impl $crate::cuda::KernelArg<$ty>),*
                    ) -> $crate::Result<()> {
                        $(
                            let (mut $arg, _guard) =
                                $crate::cuda::KernelArg::<$ty>::into_param($arg, cx.stream());
                        )*
                        let mut params = [$((&raw mut $arg).cast::<::core::ffi::c_void>()),*];
                        // SAFETY: the parameters are of the declared types; all else is the
                        // caller's promise.
                        unsafe { MODULE.launch(Index::$kernel as usize, cx, config, &mut params) }
                    }

                    /// The loaded function, for what `launch` does not do.
                    ///
                    /// # Errors
                    /// If the module cannot be loaded.
                    #[allow(dead_code)]
                    pub fn function(
                        self,
                        cx: &$crate::cuda::Context,
                    ) -> $crate::Result<&'static $crate::cudarc::driver::CudaFunction> {
                        MODULE.function(Index::$kernel as usize, cx)
                    }
                }
            )*
        }
    };
}
