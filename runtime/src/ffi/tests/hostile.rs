//! Calls that a damaged program, or one exported for another library, could make.

use super::*;
use std::ptr;

#[test]
fn the_undamaged_case_runs() {
    let mut case = Case::new();
    case.run().unwrap();
    assert_eq!(
        (case.y_out[..3].to_vec(), case.sum[0]),
        (vec![11.0, 23.0, 35.0], 69.0)
    );
}

#[test]
fn wrong_numbers_of_buffers() {
    let mut case = Case::new();
    case.frame.args.pop();
    case.refused(&["expected 2 operands, got 1"]);
    let mut case = Case::new();
    let extra = case.frame.rets[1].clone();
    case.frame.rets.push(extra);
    case.refused(&["expected 2 results, got 3"]);
}

#[test]
fn wrong_types_ranks_and_shapes() {
    type Spoil = fn(&mut FrameSpec);
    let damage: [(Spoil, &[&str]); 9] = [
        (
            |f| f.args[0].dtype = DataType::F64 as i32,
            &["`x`", "expected float32[?]", "float64[3]"],
        ),
        (
            |f| f.args[0].dtype = 32,
            &["`x`", "unsupported element type (XLA's 32)"],
        ),
        (|f| f.args[0].dims = vec![3, 1], &["`x`", "float32[3, 1]"]),
        (|f| f.args[0].dims = vec![], &["`x`", "got float32[]"]),
        (
            |f| f.args[0].dims = vec![2],
            &["`y`", "axis 0 is `n`, which is 2, but its size is 3"],
        ),
        (
            |f| f.args[0].dims = vec![-3],
            &["`x`", "negative or too large"],
        ),
        (
            |f| f.args[0].dims = vec![i64::MAX],
            &["`x`", "negative or too large"],
        ),
        (|f| f.rets[0].dims = vec![2], &["`y`", "shape [3], got [2]"]),
        (
            |f| f.rets[1].dims = vec![1],
            &["`sum`", "expected float32[], got float32[1]"],
        ),
    ];
    for (spoil, parts) in damage {
        let mut case = Case::new();
        spoil(&mut case.frame);
        case.refused(parts);
    }
}

#[test]
fn null_and_misaligned_data() {
    let mut case = Case::new();
    case.frame.args[0].data = ptr::null_mut();
    case.refused(&["`x`", "null or not aligned to 4 bytes"]);
    let mut case = Case::new();
    case.frame.rets[1].data = case.frame.rets[1].data.wrapping_add(1);
    case.refused(&["`sum`", "not aligned"]);
}

#[test]
fn empty_arrays_may_be_null() {
    let mut case = Case::new();
    for buffer in [0, 1] {
        case.frame.args[buffer].dims = vec![0];
        case.frame.args[buffer].data = ptr::null_mut();
    }
    case.frame.rets[0].dims = vec![0];
    case.frame.rets[0].data = ptr::null_mut();
    case.run().unwrap();
    assert_eq!(case.sum[0], 0.0);
}

#[test]
fn in_outs_are_copied_unless_aliased() {
    let mut case = Case::new();
    case.frame.rets[0].data = case.frame.args[1].data;
    case.run().unwrap();
    assert_eq!(
        (&case.y_in[..3], case.sum[0]),
        (&[11.0, 23.0, 35.0][..], 69.0)
    );
    assert!(case.y_out.iter().all(|v| v.is_nan()));

    // The operand partly under its own result: copied as by memmove.
    let mut case = Case::new();
    case.y_in = [10.0, 20.0, 30.0, f32::NAN];
    case.frame.rets[0].data = case.frame.args[1].data.wrapping_add(4);
    case.run().unwrap();
    assert_eq!(case.y_in, [10.0, 11.0, 23.0, 35.0]);
}

#[test]
fn in_outs_keep_their_shapes() {
    let mut case = Case::new();
    case.frame.rets[0].dims = vec![4];
    case.refused(&["`y`", "must have its shape [3], got [4]"]);
    // Found before anything is copied, also where only the frame is checked.
    assert!(case.y_out.iter().all(|v| v.is_nan()));
}

#[test]
fn overlapping_views_are_refused() {
    let mut case = Case::new();
    case.frame.rets[0].data = case.frame.args[0].data;
    case.refused(&["`y`", "overlaps that of `x`"]);
    let mut case = Case::new();
    case.frame.rets[1].data = case.frame.rets[0].data.wrapping_add(8);
    case.refused(&["`sum`", "overlaps that of `y`"]);
    // A neighbour that only touches is fine.
    let mut case = Case::new();
    case.frame.rets[1].data = case.frame.rets[0].data.wrapping_add(12);
    case.run().unwrap();
    assert_eq!(case.y_out[3], 69.0);
}

#[test]
fn wrong_attributes() {
    let spoil = |name: &str, value: AttrSpec, parts: &[&str]| {
        let mut case = Case::new();
        case.set(name, value);
        case.refused(parts);
    };
    let text = |text: &str| AttrSpec::Str(text.into());
    spoil(
        "a",
        text("2.0"),
        &["`a`", "the bits of one float32", "a string"],
    );
    spoil(
        "a",
        AttrSpec::I64(-1),
        &["`a`", "-1 does not hold the bits of a float32"],
    );
    spoil("offset", AttrSpec::I64(1 << 40), &["`offset`", "int32"]);
    spoil(
        "offset",
        AttrSpec::I64Array(vec![1]),
        &["`offset`", "int64 array of 1"],
    );
    spoil(
        "jc.batch",
        AttrSpec::I64(0),
        &["`jc.batch`", "expected a string"],
    );
    spoil("jc.batch", text("1"), &["`jc.batch` is `1`", "2 operands"]);
    spoil("jc.batch", text(""), &["`jc.batch` is ``"]);
    spoil(
        "jc.output_dims",
        text("maybe"),
        &["`jc.output_dims`", "expected `call`"],
    );

    let mut case = Case::new();
    case.frame.attrs.retain(|(name, _)| name != "a");
    case.refused(&["`a` is missing"]);
    let mut case = Case::new();
    case.frame.attrs.push(("b".into(), AttrSpec::I64(0)));
    case.refused(&["unexpected attribute `b`"]);
}

#[test]
fn wrong_batches() {
    // A batch of two: x shared, y and the results batched.
    let batched = |x: Vec<i64>, y: Vec<i64>, sum: Vec<i64>| {
        let mut case = Case::new();
        case.set("jc.batch", AttrSpec::Str("0,1".into()));
        case.frame.args[0].dims = x;
        case.frame.args[1].dims = y.clone();
        case.frame.rets[0].dims = y;
        case.frame.rets[1].dims = sum;
        case
    };
    let mut case = batched(vec![1, 2], vec![2, 2], vec![2]);
    case.run().unwrap();
    // y of the first element: 10 + 2 * 1 - 1, 20 + 2 * 2 - 1; of the second: 30 + 1, 0 + 3.
    assert_eq!(
        (case.y_out, case.sum),
        ([11.0, 23.0, 31.0, 3.0], [34.0, 34.0])
    );

    batched(vec![2, 2], vec![2, 2], vec![2]).refused(&["`x`", "batch axes are [2]"]);
    batched(vec![1, 2], vec![2, 2], vec![1]).refused(&["`sum`", "batch axes are [1]"]);
    batched(vec![2], vec![2, 2], vec![2]).refused(&["`x`", "expected float32[*, ?]"]);
    let mut case = batched(vec![1, 2], vec![2, 2], vec![2]);
    case.set("jc.batch", AttrSpec::Str("0,0".into()));
    case.refused(&["`y`", "an in-out must have all batch axes"]);
    // An empty batch runs the body not at all.
    let mut case = batched(vec![1, 2], vec![0, 2], vec![0]);
    case.run().unwrap();
    assert!(case.sum[0].is_nan());
}

#[test]
fn damaged_lists() {
    type Spoil = fn(&mut sys::CallFrame);
    let damage: [Spoil; 7] = [
        |f| f.args.size = -1,
        |f| f.args.size = i64::MAX,
        |f| f.args.buffers = ptr::null_mut(),
        // SAFETY: the lists have two entries, and are the test's own.
        |f| unsafe { *f.args.types = 9 },
        // SAFETY: as above.
        |f| unsafe { *f.rets.buffers.add(1) = ptr::null_mut() },
        // SAFETY: as above; the entry is a buffer.
        |f| unsafe { (*(*f.args.buffers).cast::<sys::Buffer>()).rank = -1 },
        // SAFETY: as above.
        |f| unsafe { (*(*f.args.buffers).cast::<sys::Buffer>()).dims = ptr::null_mut() },
    ];
    for (number, spoil) in damage.into_iter().enumerate() {
        let context = Context::new();
        let mut case = Case::new();
        case.instantiate(3, &context).unwrap();
        let error = case.frame.with_frame(host::table(3), &context, |frame| {
            spoil(frame);
            // SAFETY: the frame is damaged in a way that the handler must notice.
            unsafe { entry::handler::<Def>(frame) }
        });
        // SAFETY: the handler ran with a table of `host`.
        let failure = unsafe { host::take_error(error) }.expect("a refusal");
        assert_eq!(failure.code, 3, "damage {number}: {failure:?}");
        assert!(
            failure.message.contains("the call frame is damaged"),
            "{failure:?}"
        );
    }
}
