//! Work that waits for a copy, beside graphs that other threads launch.
//!
//! XLA's stream is used by all threads of a process: one queues "wait for this copy" and then a
//! kernel that reads what was copied, and others queue their own work at any moment.

use jax_callable::cudarc::driver::sys::CUevent_flags::CU_EVENT_DISABLE_TIMING as UNTIMED;
use jax_callable::cudarc::driver::sys::CUgraphInstantiate_flags as Flags;
use jax_callable::cudarc::driver::sys::CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL;
use jax_callable::cudarc::driver::{CudaContext, CudaGraph, CudaSlice, CudaStream, DevicePtr};
use jax_callable::prelude::*;
use jax_callable::testing::{CallSite, Target};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// Elements of an array that is copied: enough that the copy takes a while.
const LENGTH: usize = 1 << 18;

/// Numbers that are looked at, at an array's end.
const TAIL: usize = 256;

/// For a time, one thread copies numbers to the device on a stream of its own, and has another stream
/// wait for that and then copy them on by a kernel, while a second thread calls
/// `graphs.slow_{mode}` on that other stream; `direct` launches a bare graph there instead.
/// Returns how often the first did, how often the second, and how often the kernel read numbers
/// from before the copy.
#[jax_callable(has_side_effect, output_dims = 3)]
fn graph_race(
    seconds: f32,
    mode: &str,
    direct: bool,
    mut counts: cpu::ArrayMut<u32, 1>,
) -> Result<()> {
    let device = CudaContext::new(0)?;
    // SAFETY: what is used on two streams is ordered here.
    unsafe { device.disable_event_tracking() };
    let shared = device.new_stream()?;
    let launcher = Launcher::new(&shared, mode, direct)?;
    let (stop, launches) = (AtomicBool::new(false), AtomicU32::new(0));
    let waited = std::thread::scope(|scope| {
        let launching = scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                launcher.launch()?;
                launches.fetch_add(4, Ordering::Relaxed);
            }
            Ok::<_, Error>(())
        });
        let end = Instant::now() + Duration::from_secs_f32(seconds);
        let waited = wait_for_copies(&device, &shared, end);
        stop.store(true, Ordering::Relaxed);
        let launched = launching.join();
        launched.map_err(|_| Error::internal("a thread panicked"))??;
        waited
    });
    device.synchronize()?;
    let (rounds, wrong) = waited?;
    counts.copy_from_slice(&[rounds, launches.into_inner(), wrong]);
    Ok(())
}

/// A call site of `graphs.slow_{mode}` without delay, which is a kernel y <- x.
fn site(mode: &str, length: usize) -> Result<CallSite> {
    let call = Target::find_cuda(&format!("slow_{mode}"))?.call();
    let call = call.value("milliseconds", 0_u32).value("cycles", 0_i64);
    call.input_shape("x", [length]).instantiate()
}

/// Calls y <- x at a call site.
fn copy(site: &CallSite, stream: &CudaStream, x: u64, y: u64) -> Result<()> {
    // SAFETY: both addresses are of as many numbers as the call site has, which are kept until the
    // device was waited for.
    unsafe { site.execute(0, stream.cu_stream().cast(), &[x], &[y]) }
}

fn address(array: &CudaSlice<f32>) -> u64 {
    array.device_ptr(array.stream()).0
}

/// Numbers copied to the device, and on: how often, and how often the old ones.
fn wait_for_copies(
    device: &Arc<CudaContext>,
    shared: &Arc<CudaStream>,
    end: Instant,
) -> Result<(u32, u32)> {
    let (into, from) = (device.new_stream()?, device.new_stream()?);
    let mut x = into.alloc_zeros::<f32>(LENGTH)?;
    let y = into.alloc_zeros::<f32>(TAIL)?;
    // SAFETY: plain numbers, all written before they are read.
    let mut source = unsafe { device.alloc_pinned::<f32>(LENGTH)? };
    source.as_mut_slice()?.fill(0.0);
    let mut read = [0.0_f32; TAIL];
    let events = [(); 3].map(|()| device.new_event(Some(UNTIMED)));
    let [free, landed, done] = events;
    let (free, landed, done) = (free?, landed?, done?);
    let site = site("none", TAIL)?;
    let tail = address(&x) + (size_of::<f32>() * (LENGTH - TAIL)) as u64;
    into.synchronize()?;
    let (mut rounds, mut wrong) = (0, 0);
    let mut round = || {
        rounds += 1;
        source.as_mut_slice()?[LENGTH - TAIL..].fill(rounds as f32);
        free.record(shared)?;
        into.wait(&free)?;
        into.memcpy_htod(&source, &mut x)?;
        landed.record(&into)?;
        shared.wait(&landed)?;
        copy(&site, shared, tail, address(&y))?;
        done.record(shared)?;
        from.wait(&done)?;
        from.memcpy_dtoh(&y, &mut read)?;
        from.synchronize()?;
        wrong += u32::from(read != [rounds as f32; TAIL]);
        Ok::<_, Error>(())
    };
    let mut result = Ok(());
    while result.is_ok() && Instant::now() < end {
        result = round();
    }
    // Also after a failure: the arrays may be in use.
    device.synchronize()?;
    result?;
    Ok((rounds, wrong))
}

/// Launches y <- x on the shared stream.
struct Launcher {
    shared: Arc<CudaStream>,
    site: CallSite,
    /// Instead of a call at the site.
    graph: Option<CudaGraph>,
    x: CudaSlice<f32>,
    y: CudaSlice<f32>,
}

// SAFETY: one thread launches; the device is waited for before this is dropped.
unsafe impl Sync for Launcher {}

impl Launcher {
    fn new(shared: &Arc<CudaStream>, mode: &str, direct: bool) -> Result<Launcher> {
        let [x, y] = [(); 2].map(|()| shared.alloc_zeros::<f32>(TAIL));
        let (x, y) = (x?, y?);
        shared.synchronize()?;
        let mut graph = None;
        if direct {
            let plain = site("none", TAIL)?;
            // Loads its kernel, which a capture would forbid.
            copy(&plain, shared, address(&x), address(&y))?;
            // Nobody else uses the stream yet.
            shared.begin_capture(CU_STREAM_CAPTURE_MODE_THREAD_LOCAL)?;
            let copied = copy(&plain, shared, address(&x), address(&y));
            graph = shared.end_capture(Flags::CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY)?;
            copied?;
            if graph.is_none() {
                return Err(Error::internal("the capture gave no graph"));
            }
        }
        let site = site(mode, TAIL)?;
        let shared = Arc::clone(shared);
        Ok(Launcher {
            shared,
            site,
            graph,
            x,
            y,
        })
    }

    /// Launches it a few times, and waits.
    fn launch(&self) -> Result<()> {
        for _ in 0..4 {
            match &self.graph {
                Some(graph) => graph.launch()?,
                None => copy(&self.site, &self.shared, address(&self.x), address(&self.y))?,
            }
        }
        self.shared.synchronize()?;
        Ok(())
    }
}
