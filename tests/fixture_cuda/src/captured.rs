//! What the driver has captured of a body, seen from inside of it.

use super::{grid, kernels};
use jax_callable::cudarc::driver::{CudaStream, sys};
use jax_callable::prelude::*;
use std::ffi::c_void;
use std::ptr;
use std::sync::Mutex;

/// Kernels, copies, memsets, and nodes of any other kind.
type Counts = [u32; 4];

static CAPTURES: Mutex<Vec<Counts>> = Mutex::new(Vec::new());

/// The nodes in the graphs of `walks_its_graph` since the last time: how many graphs, then the
/// least, then the most among them of kernels, copies, memsets, others.
#[jax_callable(has_side_effect, output_dims = 9)]
fn captured_nodes(mut report: cpu::ArrayMut<u32, 1>) {
    let captures = std::mem::take(&mut *CAPTURES.lock().expect("no test panics here"));
    report[0] = captures.len() as u32;
    for kind in 0..4 {
        let counts = || captures.iter().map(|counts| counts[kind]);
        report[1 + kind] = counts().min().unwrap_or(0);
        report[5 + kind] = counts().max().unwrap_or(0);
    }
}

/// y <- 2 x and z <- a x by two kernels, a memset and, for `copied` <- x, a copy. Then, in a
/// capture, counts the nodes of the graph. `host_node` adds one that should not be there.
#[jax_callable]
fn walks_its_graph(
    cx: &cuda::Context,
    a: f32,
    host_node: bool,
    #[dims(n)] x: cuda::Array<f32, 1>,
    #[dims(n)] mut y: cuda::ArrayMut<f32, 1>,
    #[dims(n)] mut z: cuda::ArrayMut<f32, 1>,
    #[dims(n)] mut copied: cuda::ArrayMut<f32, 1>,
) -> Result<()> {
    let Some((n, config)) = grid(x.len())? else {
        return Ok(());
    };
    cx.stream().memset_zeros(&mut z)?;
    // SAFETY: the arrays have `n` elements.
    unsafe {
        kernels::double_each.launch(cx, config, n, &x, &mut y)?;
        kernels::saxpy.launch(cx, config, n, a, &x, &mut z)?;
    }
    cx.stream().memcpy_dtod(&x, &mut copied)?;
    if host_node {
        // SAFETY: the function may be called at any time, with anything.
        unsafe { sys::cuLaunchHostFunc(cx.stream().cu_stream(), Some(nothing), ptr::null_mut()) }
            .result()?;
    }
    if cx.is_capturing()? {
        // SAFETY: the stream is being captured.
        let counts = unsafe { count_nodes(cx.stream())? };
        CAPTURES.lock().expect("no test panics here").push(counts);
    }
    Ok(())
}

extern "C" fn nothing(_: *mut c_void) {}

/// # Safety
/// The stream is being captured, by this thread.
unsafe fn count_nodes(stream: &CudaStream) -> Result<Counts> {
    let mut counts = Counts::default();
    // SAFETY: each call writes to what its arguments point to, and the list has the length that
    // the driver gave for it: nobody else adds to the graph, which is the captured one.
    unsafe {
        let mut status = sys::CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_NONE;
        let (mut id, mut graph) = (0, ptr::null_mut());
        sys::cuStreamGetCaptureInfo_v2(
            stream.cu_stream(),
            &mut status,
            &mut id,
            &mut graph,
            ptr::null_mut(),
            ptr::null_mut(),
        )
        .result()?;
        let mut len = 0;
        sys::cuGraphGetNodes(graph, ptr::null_mut(), &mut len).result()?;
        let mut nodes = vec![ptr::null_mut(); len];
        sys::cuGraphGetNodes(graph, nodes.as_mut_ptr(), &mut len).result()?;
        for node in nodes {
            // A number: the driver may know kinds that are newer than the enum.
            let mut kind = u32::MAX;
            sys::cuGraphNodeGetType(node, (&raw mut kind).cast()).result()?;
            counts[kind.min(3) as usize] += 1;
        }
    }
    Ok(counts)
}
