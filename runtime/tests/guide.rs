//! The code of docs/testing.md.

use jax_callable::prelude::*;
use std::sync::Mutex;

/// y <- a x + y, in place.
#[jax_callable(in_out = y)]
fn axpy(a: f32, #[dims(n)] x: cpu::Array<f32, 1>, #[dims(n)] mut y: cpu::ArrayMut<f32, 1>) {
    for (y, x) in y.iter_mut().zip(x.iter()) {
        *y += a * x;
    }
}

/// y[i] <- the mean of row i of x.
#[jax_callable(batch_dims = n)]
fn row_means(
    #[dims(n, m)] x: cpu::Array<f64, 2>,
    #[dims(n)] mut y: cpu::ArrayMut<f64, 1>,
) -> Result<()> {
    if x.dim(1) == 0 {
        return Err(Error::invalid_argument("the rows are empty"));
    }
    for (y, row) in y.iter_mut().zip(x.chunks(x.dim(1))) {
        *y = row.iter().sum::<f64>() / row.len() as f64;
    }
    Ok(())
}

/// y <- the sum of this and all earlier x at this place of a program.
#[jax_callable(state = Mutex::new(0.0))]
fn running(
    x: cpu::Array<f64, 0>,
    sum: &State<Mutex<f64>>,
    mut y: cpu::ArrayMut<f64, 0>,
) -> Result<()> {
    let mut sum = sum
        .lock()
        .map_err(|_| Error::internal("an earlier call panicked"))?;
    *sum += x[[]];
    y[[]] = *sum;
    Ok(())
}

#[cfg(test)]
mod tests {
    use jax_callable::prelude::*;
    use jax_callable::testing::Target;

    #[test]
    fn axpy_adds() -> Result<()> {
        let call = Target::find("axpy")?.call().value("a", 2.0_f32);
        let outcome = call
            .input("x", [2], &[1.0_f32, 2.0])
            .input("y", [2], &[10.0_f32, 20.0])
            .run()?;
        assert_eq!(outcome.get::<f32>("y"), [12.0, 24.0]);
        Ok(())
    }

    #[test]
    fn rows_have_numbers() -> Result<()> {
        let call = Target::find("row_means")?.call();
        let error = call.input("x", [2, 0], &[0.0_f64; 0]).run().unwrap_err();
        assert_eq!(error.code(), Code::InvalidArgument);
        assert!(error.to_string().ends_with("row_means: the rows are empty"));
        Ok(())
    }

    #[test]
    fn a_batch_shares_x() -> Result<()> {
        let call = Target::find("axpy")?
            .call()
            .value("a", 1.0_f32)
            .batch_size(2);
        let call = call.input("x", [2], &[1.0_f32, 2.0]);
        let outcome = call
            .batched_input("y", [2], &[0.0_f32, 0.0, 5.0, 5.0])
            .run()?;
        assert_eq!(outcome.get::<f32>("y"), [1.0, 2.0, 6.0, 7.0]);
        assert_eq!(outcome.shape("y"), [2, 2]);
        Ok(())
    }

    #[test]
    fn row_means_keeps_its_promise() -> Result<()> {
        Target::find("row_means")?
            .call()
            .random_input("x", [6, 4])
            .check_batch_dims()
    }

    #[test]
    fn each_call_site_has_its_sum() -> Result<()> {
        let call = Target::find("running")?.call().input("x", [], &[1.5_f64]);
        let (one, other) = (call.instantiate()?, call.instantiate()?);
        assert_eq!(one.run(&call)?.get::<f64>("y"), [1.5]);
        assert_eq!(one.run(&call)?.get::<f64>("y"), [3.0]);
        assert_eq!(other.run(&call)?.get::<f64>("y"), [1.5]);
        Ok(())
    }

    #[test]
    fn any_host_will_do() -> Result<()> {
        let call = Target::find("axpy")?.call().value("a", 1.0_f32);
        let call = call.input("x", [1], &[1.0_f32]).input("y", [1], &[2.0_f32]);
        for minor in 1..=5 {
            let outcome = call.clone().api_version(minor).alias_in_outs(false).run()?;
            assert_eq!(outcome.get::<f32>("y"), [3.0]);
        }
        Ok(())
    }

    #[test]
    fn damaged_calls_are_refused() -> Result<()> {
        let call = Target::find("axpy")?.call().value("a", 1.0_f32);
        let call = call
            .input("x", [2], &[1.0_f32, 2.0])
            .input("y", [2], &[0.0_f32; 2]);
        let report = call.check_damages()?;
        assert!(report.refused > 200);
        Ok(())
    }
}

#[cfg(feature = "ndarray")]
mod arrays {
    use jax_callable::ndarray::{Ix1, array};
    use jax_callable::prelude::*;
    use jax_callable::testing::Target;

    #[test]
    fn means_of_columns() -> Result<()> {
        let x = array![[1.0, 2.0, 3.0], [5.0, 6.0, 7.0]];
        let outcome = Target::find("row_means")?
            .call()
            .input_array("x", &x.t())
            .run()?;
        assert_eq!(outcome.array::<f64, Ix1>("y"), array![3.0, 4.0, 5.0]);
        Ok(())
    }
}

#[test]
fn the_page_has_this_code() {
    let page = include_str!("../../docs/testing.md");
    let code = include_str!("guide.rs");
    let blocks: Vec<_> = page.split("\n```rust\n").skip(1).collect();
    assert_eq!(blocks.len(), 7);
    for block in blocks {
        let block = block.split("\n```").next().unwrap_or_default();
        let is_same = |indent: &str| {
            let lines = block.lines().map(|line| match line {
                "" => String::new(),
                line => format!("{indent}{line}"),
            });
            code.contains(&lines.collect::<Vec<_>>().join("\n"))
        };
        assert!(is_same("") || is_same("    "), "not in guide.rs:\n{block}");
    }
}
