//! The same bodies in every graph mode: `graphs.mix_none`, `graphs.mix_warp`, ...

use super::grid;
use jax_callable::cuda::{Gemm, KernelValue};
use jax_callable::prelude::*;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// What the kernel `scale_struct` takes by value: without padding.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Arrays {
    x: u64,
    n: u32,
    scale: f32,
    y: u64,
}

// SAFETY: the struct of the same name in the source has this layout.
unsafe impl KernelValue for Arrays {}

cuda::module! {
    mod graph_kernels = source(include_str!("graphs.cu"));
    fn saxpy_into(n: u32, a: f32, x: *const f32, y: *mut f32);
    fn add(n: u32, x: *const f32, y: *const f32, z: *mut f32);
    fn add_at(n: u32, x: *const f32, distance: i64, z: *mut f32);
    fn scale_struct(arrays: Arrays);
    fn slow_copy(n: u32, cycles: i64, x: *const f32, y: *mut f32);
}

static RUNS: [AtomicU32; 5] = [const { AtomicU32::new(0) }; 5];

/// How often the bodies of `mix` ran: in the modes None, Jax, Warp, WarpStaged, WarpStagedEx.
#[jax_callable(has_side_effect, output_dims = 5)]
fn mix_runs(mut runs: cpu::ArrayMut<u32, 1>) {
    for (run, count) in runs.iter_mut().zip(&RUNS) {
        *run = count.load(Ordering::SeqCst);
    }
}

type Input<'a> = cuda::Array<'a, f32, 1>;
type Output<'a> = cuda::ArrayMut<'a, f32, 1>;

/// c <- c + s a, d <- d + s b, e <- a + b + 0 by way of a memset: kernels and a memset, in-outs
/// and an output.
fn mix(
    cx: &cuda::Context,
    s: f32,
    a: Input<'_>,
    b: Input<'_>,
    mut c: Output<'_>,
    mut d: Output<'_>,
    mut e: Output<'_>,
) -> Result<()> {
    let Some((n, config)) = grid(a.len())? else {
        return Ok(());
    };
    cx.stream().memset_zeros(&mut e)?;
    // SAFETY: all arrays have `n` elements.
    unsafe {
        graph_kernels::saxpy_into.launch(cx, config, n, s, &a, &mut c)?;
        graph_kernels::saxpy_into.launch(cx, config, n, s, &b, &mut d)?;
        graph_kernels::saxpy_into.launch(cx, config, n, 1.0, &a, &mut e)?;
        graph_kernels::saxpy_into.launch(cx, config, n, 1.0, &b, &mut e)
    }
}

/// z <- x + y, with y given by its distance from x.
fn distance(cx: &cuda::Context, x: Input<'_>, y: Input<'_>, mut z: Output<'_>) -> Result<()> {
    let Some((n, config)) = grid(x.len())? else {
        return Ok(());
    };
    let distance = y.device_ptr().wrapping_sub(x.device_ptr()).cast_signed();
    // SAFETY: both are arrays of `n` elements.
    unsafe { graph_kernels::add_at.launch(cx, config, n, &x, distance, &mut z) }
}

/// y <- scale x, twice: for each half by a pointer into the arrays, in a struct.
fn halves(cx: &cuda::Context, scale: f32, x: Input<'_>, y: Output<'_>) -> Result<()> {
    let half = x.len() / 2;
    for (start, len) in [(0, half), (half, x.len() - half)] {
        let Some((n, config)) = grid(len)? else {
            continue;
        };
        let skipped = (start * size_of::<f32>()) as u64;
        let arrays = Arrays {
            x: x.device_ptr() + skipped,
            n,
            scale,
            y: y.device_ptr() + skipped,
        };
        // SAFETY: both arrays have `n` elements from `start` on.
        unsafe { graph_kernels::scale_struct.launch(cx, config, arrays)? };
    }
    Ok(())
}

/// y <- x, by a copy.
fn copy(cx: &cuda::Context, x: Input<'_>, mut y: Output<'_>) -> Result<()> {
    Ok(cx.stream().memcpy_dtod(&x, &mut y)?)
}

/// y <- x, by way of memory that the body allocates on the stream.
fn allocate(cx: &cuda::Context, x: Input<'_>, mut y: Output<'_>) -> Result<()> {
    let mut between = cx.stream().alloc_zeros::<f32>(x.len())?;
    cx.stream().memcpy_dtod(&x, &mut between)?;
    cx.stream().memcpy_dtod(&between, &mut y)?;
    Ok(())
}

/// y <- x, in a body that waits, which no capture allows.
fn wait(cx: &cuda::Context, x: Input<'_>, mut y: Output<'_>) -> Result<()> {
    cx.stream().memcpy_dtod(&x, &mut y)?;
    cx.stream().synchronize()?;
    Ok(())
}

/// y <- x, in a body that takes its time, and a kernel that does.
fn slow(
    cx: &cuda::Context,
    milliseconds: u32,
    cycles: i64,
    x: Input<'_>,
    mut y: Output<'_>,
) -> Result<()> {
    let Some((n, config)) = grid(x.len())? else {
        return Ok(());
    };
    std::thread::sleep(Duration::from_millis(milliseconds.into()));
    // SAFETY: both arrays have `n` elements.
    unsafe { graph_kernels::slow_copy.launch(cx, config, n, cycles, &x, &mut y) }
}

/// Fails while `fails` is among the first calls, then y <- x.
fn fail_first(
    cx: &cuda::Context,
    calls: &AtomicU32,
    x: Input<'_>,
    mut y: Output<'_>,
) -> Result<()> {
    cx.stream().memcpy_dtod(&x, &mut y)?;
    if calls.fetch_add(1, Ordering::SeqCst) == 0 {
        return Err(Error::out_of_range("the first call fails"));
    }
    Ok(())
}

/// y <- x 0, 1, 2, .., from the host.
fn upload(cx: &cuda::Context, x: Input<'_>, mut y: Output<'_>) -> Result<()> {
    let _ = x;
    let host: Vec<_> = (0..y.len()).map(|i| i as f32).collect();
    cx.upload(host, &mut y)
}

/// y <- x, by way of memory of the body.
fn dangle(cx: &cuda::Context, x: Input<'_>, mut y: Output<'_>) -> Result<()> {
    let host = vec![1.0; x.len()];
    Ok(cx.stream().memcpy_htod(&host, &mut y)?)
}

macro_rules! modes {
    ($($mode:ident $index:literal {
        $mix:ident $distance:ident $halves:ident $copy:ident $allocate:ident $wait:ident
        $slow:ident $fail_first:ident $upload:ident $dangle:ident $gemm:ident $total:ident
    })*) => {$(
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
            RUNS[$index].fetch_add(1, Ordering::SeqCst);
            mix(cx, s, a, b, c, d, e)
        }

        #[jax_callable(graph_mode = $mode)]
        fn $distance(
            cx: &cuda::Context,
            #[dims(n)] x: cuda::Array<f32, 1>,
            #[dims(n)] y: cuda::Array<f32, 1>,
            #[dims(n)] z: cuda::ArrayMut<f32, 1>,
        ) -> Result<()> {
            distance(cx, x, y, z)
        }

        #[jax_callable(graph_mode = $mode)]
        fn $halves(
            cx: &cuda::Context,
            scale: f32,
            x: cuda::Array<f32, 1>,
            y: cuda::ArrayMut<f32, 1>,
        ) -> Result<()> {
            halves(cx, scale, x, y)
        }

        #[jax_callable(graph_mode = $mode)]
        fn $copy(
            cx: &cuda::Context,
            x: cuda::Array<f32, 1>,
            y: cuda::ArrayMut<f32, 1>,
        ) -> Result<()> {
            copy(cx, x, y)
        }

        #[jax_callable(graph_mode = $mode)]
        fn $allocate(
            cx: &cuda::Context,
            x: cuda::Array<f32, 1>,
            y: cuda::ArrayMut<f32, 1>,
        ) -> Result<()> {
            allocate(cx, x, y)
        }

        #[jax_callable(graph_mode = $mode)]
        fn $wait(
            cx: &cuda::Context,
            x: cuda::Array<f32, 1>,
            y: cuda::ArrayMut<f32, 1>,
        ) -> Result<()> {
            wait(cx, x, y)
        }

        #[jax_callable(graph_mode = $mode)]
        fn $slow(
            cx: &cuda::Context,
            milliseconds: u32,
            cycles: i64,
            x: cuda::Array<f32, 1>,
            y: cuda::ArrayMut<f32, 1>,
        ) -> Result<()> {
            slow(cx, milliseconds, cycles, x, y)
        }

        #[jax_callable(graph_mode = $mode)]
        fn $fail_first(
            cx: &cuda::Context,
            x: cuda::Array<f32, 1>,
            y: cuda::ArrayMut<f32, 1>,
        ) -> Result<()> {
            static CALLS: AtomicU32 = AtomicU32::new(0);
            fail_first(cx, &CALLS, x, y)
        }

        #[jax_callable(graph_mode = $mode)]
        fn $upload(
            cx: &cuda::Context,
            x: cuda::Array<f32, 1>,
            y: cuda::ArrayMut<f32, 1>,
        ) -> Result<()> {
            upload(cx, x, y)
        }

        #[jax_callable(graph_mode = $mode)]
        fn $dangle(
            cx: &cuda::Context,
            x: cuda::Array<f32, 1>,
            y: cuda::ArrayMut<f32, 1>,
        ) -> Result<()> {
            dangle(cx, x, y)
        }

        #[jax_callable(graph_mode = $mode)]
        fn $gemm(
            cx: &cuda::Context,
            #[dims(n, k)] a: cuda::Array<f32, 2>,
            #[dims(k, m)] b: cuda::Array<f32, 2>,
            #[dims(n, m)] mut c: cuda::ArrayMut<f32, 2>,
            #[dims(33_554_432)] mut workspace: cuda::ArrayMut<u8, 1>,
        ) -> Result<()> {
            cx.blas(&mut workspace)?.gemm(Gemm::default(), &a, &b, &mut c)
        }

        #[jax_callable(graph_mode = $mode)]
        fn $total(
            cx: &cuda::Context,
            x: cuda::Array<f32, 1>,
            #[dims()] mut total: cuda::ArrayMut<f32, 0>,
        ) -> Result<()> {
            let config = cuda::LaunchConfig { grid_dim: (1, 1, 1), block_dim: (1, 1, 1), shared_mem_bytes: 0 };
            // SAFETY: the kernel reads `n` elements and writes one.
            unsafe { super::kernels::sum.launch(cx, config, u32::try_from(x.len())?, &x, &mut total) }
        }
    )*};
}

modes! {
    None 0 {
        mix_none distance_none halves_none copy_none allocate_none wait_none
        slow_none fail_first_none upload_none dangle_none gemm_none total_none
    }
    Jax 1 {
        mix_jax distance_jax halves_jax copy_jax allocate_jax wait_jax
        slow_jax fail_first_jax upload_jax dangle_jax gemm_jax total_jax
    }
    Warp 2 {
        mix_warp distance_warp halves_warp copy_warp allocate_warp wait_warp
        slow_warp fail_first_warp upload_warp dangle_warp gemm_warp total_warp
    }
    WarpStaged 3 {
        mix_staged distance_staged halves_staged copy_staged allocate_staged wait_staged
        slow_staged fail_first_staged upload_staged dangle_staged gemm_staged total_staged
    }
    WarpStagedEx 4 {
        mix_staged_ex distance_staged_ex halves_staged_ex copy_staged_ex allocate_staged_ex
        wait_staged_ex slow_staged_ex fail_first_staged_ex upload_staged_ex dangle_staged_ex
        gemm_staged_ex total_staged_ex
    }
}

/// y <- x, in a body that panics at addresses that no GPU has.
#[jax_callable(graph_mode = Warp)]
fn shy_warp(cx: &cuda::Context, x: cuda::Array<f32, 1>, y: cuda::ArrayMut<f32, 1>) -> Result<()> {
    assert!(
        x.device_ptr() < 1 << 57,
        "who made {:#x} up?",
        x.device_ptr()
    );
    let mut y = y;
    let Some((n, config)) = grid(x.len())? else {
        return Ok(());
    };
    // SAFETY: both arrays have `n` elements.
    unsafe { graph_kernels::slow_copy.launch(cx, config, n, 0, &x, &mut y) }
}

/// y <- x, in a body that ends the capture it runs in and throws the graph away.
#[jax_callable(graph_mode = Warp)]
fn ends_capture_warp(
    cx: &cuda::Context,
    x: cuda::Array<f32, 1>,
    mut y: cuda::ArrayMut<f32, 1>,
) -> Result<()> {
    use jax_callable::cudarc::driver::sys::CUgraphInstantiate_flags;
    cx.stream().memcpy_dtod(&x, &mut y)?;
    drop(cx.stream().end_capture(CUgraphInstantiate_flags(0))?);
    Ok(())
}

/// y <- x, in a body that gives up all graphs of its kind, other call sites' too.
#[jax_callable(graph_mode = WarpStaged)]
fn clears_staged(
    cx: &cuda::Context,
    x: cuda::Array<f32, 1>,
    mut y: cuda::ArrayMut<f32, 1>,
) -> Result<()> {
    if let Some(graphs) = cuda::graphs::Graphs::of("fixture_cuda.clears_staged") {
        graphs.clear();
    }
    Ok(cx.stream().memcpy_dtod(&x, &mut y)?)
}
