//! The same bodies in every graph mode.

use jax_callable::cuda::{KernelValue, LaunchConfig};
use jax_callable::cudarc::driver::{CudaSlice, CudaStream};
use jax_callable::prelude::*;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

cuda::module! {
    pub mod kernels = ptx("// stand-in\naxpy add add_at add_unused scale_struct");
    fn axpy(n: u32, a: f32, x: *const f32, y: *mut f32);
    fn add(n: u32, x: *const f32, y: *const f32, z: *mut f32);
    fn add_at(n: u32, x: *const f32, distance: i64, z: *mut f32);
    fn add_unused(n: u32, x: *const f32, y: *const f32, z: *mut f32, unused: u64);
    fn scale_struct(arrays: Halves);
}

/// What `scale_struct` takes by value.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Halves {
    x: u64,
    n: u32,
    scale: f32,
    y: u64,
}

// SAFETY: the kernel has this layout, and there is no padding.
unsafe impl KernelValue for Halves {}

type Input<'a> = cuda::Array<'a, f32, 1>;
type Output<'a> = cuda::ArrayMut<'a, f32, 1>;

fn config(n: usize) -> Result<(u32, LaunchConfig)> {
    let n = u32::try_from(n)?;
    Ok((n, LaunchConfig::for_num_elems(n)))
}

/// c <- c + s a, d <- d + s b, e <- a + b by way of a memset.
fn mix(
    cx: &cuda::Context,
    s: f32,
    (a, b): (Input<'_>, Input<'_>),
    (mut c, mut d, mut e): (Output<'_>, Output<'_>, Output<'_>),
) -> Result<()> {
    let (n, config) = config(a.len())?;
    cx.stream().memset_zeros(&mut e)?;
    // SAFETY: all arrays have `n` elements.
    unsafe {
        kernels::axpy.launch(cx, config, n, s, &a, &mut c)?;
        kernels::axpy.launch(cx, config, n, s, &b, &mut d)?;
        kernels::axpy.launch(cx, config, n, 1.0, &a, &mut e)?;
        kernels::axpy.launch(cx, config, n, 1.0, &b, &mut e)
    }
}

/// z <- x + y, with y given by its distance from x.
fn distance(cx: &cuda::Context, x: Input<'_>, y: Input<'_>, mut z: Output<'_>) -> Result<()> {
    let (n, config) = config(x.len())?;
    let distance = y.device_ptr().wrapping_sub(x.device_ptr()).cast_signed();
    // SAFETY: all arrays have `n` elements.
    unsafe { kernels::add_at.launch(cx, config, n, &x, distance, &mut z) }
}

/// z <- x + y, by a kernel that gets the address of a variable of the body's, which is elsewhere each
/// time.
fn on_stack(cx: &cuda::Context, x: Input<'_>, y: Input<'_>, mut z: Output<'_>) -> Result<()> {
    static CALLS: AtomicU32 = AtomicU32::new(0);
    let (n, config) = config(x.len())?;
    let depth = CALLS.fetch_add(1, Ordering::Relaxed) % 7;
    deeper(depth, &mut |variable| {
        // SAFETY: all arrays have `n` elements.
        unsafe { kernels::add_unused.launch(cx, config, n, &x, &y, &mut z, variable) }
    })
}

fn deeper(depth: u32, body: &mut dyn FnMut(u64) -> Result<()>) -> Result<()> {
    let variable = std::hint::black_box([depth; 16]);
    match depth {
        0 => body((&raw const variable).addr() as u64),
        _ => deeper(depth - 1, body).inspect(|()| {
            std::hint::black_box(&variable);
        }),
    }
}

/// z <- 3 x, by halves, whose addresses are in structs; y is not used.
fn halves(cx: &cuda::Context, x: Input<'_>, _y: Input<'_>, z: Output<'_>) -> Result<()> {
    let half = x.len() / 2;
    for (start, len) in [(0, half), (half, x.len() - half)] {
        let (n, config) = config(len)?;
        let skipped = (start * size_of::<f32>()) as u64;
        let arrays = Halves {
            x: x.device_ptr() + skipped,
            n,
            scale: 3.0,
            y: z.device_ptr() + skipped,
        };
        // SAFETY: both arrays have `n` elements from `start` on.
        unsafe { kernels::scale_struct.launch(cx, config, arrays)? };
    }
    Ok(())
}

/// z <- x + y, by way of memory that the body allocates.
fn allocate(cx: &cuda::Context, x: Input<'_>, y: Input<'_>, mut z: Output<'_>) -> Result<()> {
    let (n, config) = config(x.len())?;
    let mut between = cx.stream().alloc_zeros::<f32>(x.len())?;
    cx.stream().memcpy_dtod(&x, &mut between)?;
    // SAFETY: all arrays have `n` elements.
    unsafe { kernels::add.launch(cx, config, n, &between, &y, &mut z) }
}

/// A stream of a call site's own.
pub struct Side(Arc<CudaStream>);

impl Side {
    fn new(cx: &cuda::Context) -> Result<Side> {
        Ok(Side(cx.device().new_stream()?))
    }
}

/// z <- x + y, partly on another stream.
fn fork(
    cx: &cuda::Context,
    Side(other): &Side,
    (x, y): (Input<'_>, Input<'_>),
    mut z: Output<'_>,
) -> Result<()> {
    let (n, config) = config(x.len())?;
    other.join(cx.stream())?;
    let joined = other
        .memset_zeros(&mut z)
        .and_then(|()| cx.stream().join(other));
    if let Err(error) = joined {
        // What is not joined must not outlive the call.
        let _ = other.synchronize();
        return Err(error.into());
    }
    // SAFETY: all arrays have `n` elements.
    unsafe {
        kernels::axpy.launch(cx, config, n, 1.0, &x, &mut z)?;
        kernels::axpy.launch(cx, config, n, 1.0, &y, &mut z)
    }
}

/// z <- x + y, where x is copied from the host, and so must be `numbers(1, len)`.
fn upload(cx: &cuda::Context, x: Input<'_>, y: Input<'_>, mut z: Output<'_>) -> Result<()> {
    let (n, config) = config(x.len())?;
    cx.upload(super::numbers(1, x.len()), &mut z)?;
    // SAFETY: both arrays have `n` elements.
    unsafe { kernels::axpy.launch(cx, config, n, 1.0, &y, &mut z) }
}

/// z <- x + y, by a copy from memory of the body: `numbers(1, len)` must be x.
fn dangle(cx: &cuda::Context, x: Input<'_>, y: Input<'_>, mut z: Output<'_>) -> Result<()> {
    let (n, config) = config(x.len())?;
    cx.stream()
        .memcpy_htod(&super::numbers(1, x.len()), &mut z)?;
    // SAFETY: both arrays have `n` elements.
    unsafe { kernels::axpy.launch(cx, config, n, 1.0, &y, &mut z) }
}

/// z <- x + y, in a body that waits for its work.
fn wait(cx: &cuda::Context, x: Input<'_>, y: Input<'_>, mut z: Output<'_>) -> Result<()> {
    let (n, config) = config(x.len())?;
    // SAFETY: all arrays have `n` elements.
    unsafe { kernels::add.launch(cx, config, n, &x, &y, &mut z)? };
    Ok(cx.stream().synchronize()?)
}

/// Which of the next bodies of `fail` fails, counted from 1, after it has queued all of its work.
pub static FAIL: AtomicU32 = AtomicU32::new(0);

/// z <- x + y, if it does not fail.
fn fail(cx: &cuda::Context, x: Input<'_>, y: Input<'_>, mut z: Output<'_>) -> Result<()> {
    let (n, config) = config(x.len())?;
    // SAFETY: all arrays have `n` elements.
    unsafe { kernels::add.launch(cx, config, n, &x, &y, &mut z)? };
    let count = FAIL.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |n| n.checked_sub(1));
    match count {
        Ok(1) => Err(Error::out_of_range("this one fails")),
        _ => Ok(()),
    }
}

/// z <- x + y, by way of scratch.
fn by_scratch(
    cx: &cuda::Context,
    (x, y): (Input<'_>, Input<'_>),
    mut w: cuda::Scratch<'_, f32, 1>,
    mut z: Output<'_>,
) -> Result<()> {
    let (n, config) = config(x.len())?;
    cx.stream().memcpy_dtod(&x, &mut w)?;
    // SAFETY: all arrays have `n` elements.
    unsafe { kernels::add.launch(cx, config, n, &w, &y, &mut z) }
}

/// A stream of a call site's own with a number.
pub struct Twin(Side, Mutex<CudaSlice<f32>>);

impl Twin {
    fn new(cx: &cuda::Context) -> Result<Twin> {
        let side = Side::new(cx)?;
        let number = side.0.alloc_zeros(1)?;
        side.0.synchronize()?;
        Ok(Twin(side, Mutex::new(number)))
    }
}

/// z <- x + y, by a memset beside another one, which is not of the arrays.
fn twins(
    cx: &cuda::Context,
    Twin(Side(other), number): &Twin,
    (x, y): (Input<'_>, Input<'_>),
    mut z: Output<'_>,
) -> Result<()> {
    let (n, config) = config(x.len())?;
    other.join(cx.stream())?;
    let number = &mut *number.lock().unwrap();
    let forked = other.memset_zeros(number);
    let joined = forked.and_then(|()| cx.stream().memset_zeros(&mut z));
    if let Err(error) = joined.and_then(|()| cx.stream().join(other)) {
        // What is not joined must not outlive the call.
        let _ = other.synchronize();
        return Err(error.into());
    }
    // SAFETY: all arrays have `n` elements.
    unsafe {
        kernels::axpy.launch(cx, config, n, 1.0, &x, &mut z)?;
        kernels::axpy.launch(cx, config, n, 1.0, &y, &mut z)
    }
}

macro_rules! modes {
    ($($mode:ident { $mix:ident $scratch:ident $fork:ident $twins:ident $($sum:ident = $body:ident)* })*) => {$(
        #[jax_callable(in_out = ("c", "d"), graph_mode = $mode)]
        fn $mix(
            cx: &cuda::Context,
            s: f32,
            #[dims(n)] a: cuda::Array<f32, 1>,
            #[dims(n)] b: cuda::Array<f32, 1>,
            #[dims(n)] c: cuda::ArrayMut<f32, 1>,
            #[dims(n)] d: cuda::ArrayMut<f32, 1>,
            #[dims(n)] e: cuda::ArrayMut<f32, 1>,
        ) -> Result<()> {
            mix(cx, s, (a, b), (c, d, e))
        }

        #[jax_callable(graph_mode = $mode)]
        fn $scratch(
            cx: &cuda::Context,
            #[dims(n)] x: cuda::Array<f32, 1>,
            #[dims(n)] y: cuda::Array<f32, 1>,
            #[dims(n)] w: cuda::Scratch<f32, 1>,
            #[dims(n)] z: cuda::ArrayMut<f32, 1>,
        ) -> Result<()> {
            by_scratch(cx, (x, y), w, z)
        }

        #[jax_callable(graph_mode = $mode, state = Side::new(cx))]
        fn $fork(
            cx: &cuda::Context,
            side: &cuda::PerDevice<Side>,
            #[dims(n)] x: cuda::Array<f32, 1>,
            #[dims(n)] y: cuda::Array<f32, 1>,
            #[dims(n)] z: cuda::ArrayMut<f32, 1>,
        ) -> Result<()> {
            fork(cx, side, (x, y), z)
        }

        #[jax_callable(graph_mode = $mode, state = Twin::new(cx))]
        fn $twins(
            cx: &cuda::Context,
            twin: &cuda::PerDevice<Twin>,
            #[dims(n)] x: cuda::Array<f32, 1>,
            #[dims(n)] y: cuda::Array<f32, 1>,
            #[dims(n)] z: cuda::ArrayMut<f32, 1>,
        ) -> Result<()> {
            twins(cx, twin, (x, y), z)
        }

        $(
            #[jax_callable(graph_mode = $mode)]
            fn $sum(
                cx: &cuda::Context,
                #[dims(n)] x: cuda::Array<f32, 1>,
                #[dims(n)] y: cuda::Array<f32, 1>,
                #[dims(n)] z: cuda::ArrayMut<f32, 1>,
            ) -> Result<()> {
                $body(cx, x, y, z)
            }
        )*
    )*};
}

modes! {
    None {
        mix_none scratch_none fork_none twins_none distance_none = distance halves_none = halves
        on_stack_none = on_stack allocate_none = allocate upload_none = upload dangle_none = dangle
        wait_none = wait fail_none = fail
    }
    Jax {
        mix_jax scratch_jax fork_jax twins_jax distance_jax = distance halves_jax = halves
        on_stack_jax = on_stack allocate_jax = allocate upload_jax = upload dangle_jax = dangle
        wait_jax = wait fail_jax = fail
    }
    Warp {
        mix_warp scratch_warp fork_warp twins_warp distance_warp = distance halves_warp = halves
        on_stack_warp = on_stack allocate_warp = allocate upload_warp = upload dangle_warp = dangle
        wait_warp = wait fail_warp = fail
    }
    WarpStaged {
        mix_staged scratch_staged fork_staged twins_staged distance_staged = distance halves_staged = halves
        on_stack_staged = on_stack allocate_staged = allocate upload_staged = upload
        dangle_staged = dangle wait_staged = wait fail_staged = fail
    }
    WarpStagedEx {
        mix_staged_ex scratch_staged_ex fork_staged_ex twins_staged_ex distance_staged_ex = distance halves_staged_ex = halves
        on_stack_staged_ex = on_stack allocate_staged_ex = allocate upload_staged_ex = upload
        dangle_staged_ex = dangle wait_staged_ex = wait fail_staged_ex = fail
    }
}
