//! Every version of the API, and what older and newer hosts do differently.

use super::super::host_frame;
use super::*;
use std::ptr;

#[test]
fn every_api_version_runs_with_its_own_state_layout() {
    for minor in host::MINOR_VERSIONS {
        let mut case = Case::new();
        let context = Context::new();
        case.instantiate(minor, &context).unwrap();
        for run in 1..=2 {
            case.execute(minor, &context).unwrap();
            assert_eq!(
                case.y_out[..3],
                [11.0, 23.0, 35.0],
                "API 0.{minor}, run {run}"
            );
            assert_eq!(case.sum[0], 69.0);
        }
        assert_eq!(case.y_in[..3], [10.0, 20.0, 30.0]);
    }
}

#[test]
fn a_state_is_freed_with_its_executable() {
    // Other tests' states come and go meanwhile: count those of many sites.
    let contexts: Vec<_> = (0..1000).map(|_| Context::new()).collect();
    for context in &contexts {
        Case::new().instantiate(3, context).unwrap();
    }
    let full = super::super::state::live_call_sites();
    assert!(full >= 1000);
    drop(contexts);
    assert!(super::super::state::live_call_sites() <= full - 900);
}

#[test]
fn the_metadata_query_needs_no_table_and_passes_over_unknown_extensions() {
    for handler in [entry::handler::<Def>, entry::absent::<Def>] {
        assert_eq!(host_frame::metadata(handler, None), (0, 1, 0));
        assert_eq!(
            host_frame::metadata(handler, Some(host::table(5))),
            (0, 1, 0)
        );
    }
}

#[test]
fn unknown_extensions_and_larger_structs_are_fine() {
    let mut case = Case::new();
    case.frame.unknown_extension = true;
    case.frame.struct_size = 400;
    case.run().unwrap();
    assert_eq!(case.sum[0], 69.0);
}

#[test]
fn unknown_stages_do_nothing() {
    for stage in [1, 2, 4, 77, -1] {
        let mut case = Case::new();
        case.frame.stage = stage;
        let context = Context::new();
        case.instantiate(3, &context).unwrap();
        case.execute(3, &context).unwrap();
        assert!(case.sum[0].is_nan());
    }
}

#[test]
fn hosts_that_are_too_old_are_named() {
    let mut case = Case::new();
    case.frame.struct_size = 100;
    let context = Context::new();
    let failure = case.execute(3, &context).unwrap_err();
    assert_eq!(failure.code, 9);
    assert!(failure.message.contains("100 bytes"), "{failure:?}");

    for (size, major) in [(88, 0), (192, 1)] {
        // SAFETY: the table is plain data, and only read.
        let mut table = unsafe { ptr::read(host::table(1)) };
        table.struct_size = size;
        table.api_version.major_version = major;
        let mut case = Case::new();
        // SAFETY: the buffers are right.
        let failure = unsafe { case.frame.call(entry::handler::<Def>, &table, &context) };
        let failure = failure.unwrap_err();
        assert_eq!(failure.code, 9);
        assert!(failure.message.contains("JAX 0.6.0"), "{failure:?}");
    }
}

#[test]
fn executing_a_batch_without_instantiate_is_an_error() {
    let mut case = Case::new();
    case.set("jc.batch", AttrSpec::Str("1,1".into()));
    let failure = case.execute(3, &Context::new()).unwrap_err();
    assert!(failure.message.contains("State is not set"), "{failure:?}");
}

#[test]
fn attributes_that_change_after_instantiate_are_noticed() {
    for (name, value) in [
        ("a", AttrSpec::Str("2".into())),
        ("offset", AttrSpec::I64Array(vec![1])),
    ] {
        let context = Context::new();
        let mut case = Case::new();
        case.instantiate(3, &context).unwrap();
        case.set(name, value);
        let failure = case.execute(3, &context).unwrap_err();
        assert_eq!(failure.code, 13, "{failure:?}");
        assert!(failure.message.contains("INSTANTIATE saw"), "{failure:?}");
    }
}

#[test]
fn a_second_state_is_refused_and_freed() {
    let context = Context::new();
    let mut case = Case::new();
    case.instantiate(3, &context).unwrap();
    let failure = case.instantiate(3, &context).unwrap_err();
    assert!(failure.message.contains("already set"), "{failure:?}");
    case.execute(3, &context).unwrap();
}
