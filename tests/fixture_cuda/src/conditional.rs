//! A body whose graph has a conditional node.

use jax_callable::cudarc::driver::sys;
use jax_callable::prelude::*;
use std::mem::MaybeUninit;
use std::ptr;

/// y <- x if `condition` else 0: in a capture, the copy is in the body of an IF node, which has
/// that as its value at each launch.
fn copy_if(
    cx: &cuda::Context,
    condition: bool,
    x: cuda::Array<f32, 1>,
    mut y: cuda::ArrayMut<f32, 1>,
) -> Result<()> {
    cx.stream().memset_zeros(&mut y)?;
    let bytes = size_of::<f32>() * x.len();
    let (from, to) = (x.device_ptr(), y.device_ptr());
    let stream = cx.stream().cu_stream();
    let mut status = sys::CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_NONE;
    let (mut id, mut graph, mut before, mut count) = (0, ptr::null_mut(), ptr::null(), 0);
    // SAFETY: the stream is alive, and the driver writes all of these.
    unsafe {
        sys::cuStreamGetCaptureInfo_v2(
            stream,
            &mut status,
            &mut id,
            &mut graph,
            &mut before,
            &mut count,
        )
        .result()?;
    }
    if status == sys::CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_NONE {
        if condition {
            cx.stream().memcpy_dtod(&x, &mut y)?;
        }
        return Ok(());
    }

    let context = cx.stream().context().cu_ctx();
    let mut handle = 0;
    let mut node = ptr::null_mut();
    let mut copy = ptr::null_mut();
    let mut params = MaybeUninit::<sys::CUgraphNodeParams>::zeroed();
    let mut memcpy = MaybeUninit::<sys::CUDA_MEMCPY3D>::zeroed();
    // SAFETY: both structs are plain data, for which zero is right in what is not set. The graph
    // and the nodes before are those of the capture; the arrays have this size; the stream's next
    // node waits for ours.
    unsafe {
        sys::cuGraphConditionalHandleCreate(
            &mut handle,
            graph,
            context,
            condition.into(),
            sys::CU_GRAPH_COND_ASSIGN_DEFAULT,
        )
        .result()?;
        let fields = &mut *params.as_mut_ptr();
        fields.type_ = sys::CUgraphNodeType::CU_GRAPH_NODE_TYPE_CONDITIONAL;
        let conditional = &mut fields.__bindgen_anon_1.conditional;
        conditional.handle = handle;
        conditional.size = 1;
        conditional.ctx = context;
        let params = params.as_mut_ptr();
        sys::cuGraphAddNode_v2(&mut node, graph, before, ptr::null(), count, params).result()?;
        let body = *(*params).__bindgen_anon_1.conditional.phGraph_out;

        let fields = &mut *memcpy.as_mut_ptr();
        fields.srcMemoryType = sys::CUmemorytype::CU_MEMORYTYPE_DEVICE;
        fields.srcDevice = from;
        fields.dstMemoryType = sys::CUmemorytype::CU_MEMORYTYPE_DEVICE;
        fields.dstDevice = to;
        fields.WidthInBytes = bytes;
        (fields.Height, fields.Depth) = (1, 1);
        sys::cuGraphAddMemcpyNode(&mut copy, body, ptr::null(), 0, memcpy.as_ptr(), context)
            .result()?;
        let set = sys::CUstreamUpdateCaptureDependencies_flags::CU_STREAM_SET_CAPTURE_DEPENDENCIES;
        sys::cuStreamUpdateCaptureDependencies(stream, &mut node, 1, set as u32).result()?;
    }
    Ok(())
}

macro_rules! modes {
    ($($mode:ident $name:ident)*) => {$(
        #[jax_callable(graph_mode = $mode)]
        fn $name(
            cx: &cuda::Context,
            condition: bool,
            x: cuda::Array<f32, 1>,
            y: cuda::ArrayMut<f32, 1>,
        ) -> Result<()> {
            copy_if(cx, condition, x, y)
        }
    )*};
}

modes! {
    None copy_if_none
    Warp copy_if_warp
    WarpStaged copy_if_staged
    WarpStagedEx copy_if_staged_ex
}
