//! Batch axes: which operands have them, and where an element's data lies.

use crate::error::{Error, Result};

/// How deep `jax.vmap` may nest.
pub(crate) const MAX_BATCH_AXES: usize = 32;

/// The batch axes of a call site, outermost first. Operands and results carry them in
/// front of their own dimensions; results have all of them, an operand all or none.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Batch {
    rank: usize,
    /// For each operand with axes, bit `i` is set if axis `i` is the batch's; otherwise its
    /// size is 1 there.
    masks: Box<[Option<u32>]>,
}

impl Batch {
    /// Parses the attribute `jc.batch`: for each operand one `0` or `1` an axis, or `-` for
    /// one that all elements share and that has no axes, separated by commas.
    pub(crate) fn parse(text: &str, num_operands: usize) -> Result<Batch> {
        let wrong = || {
            Error::invalid_argument(format!(
                "the attribute `jc.batch` is `{text}`, which does not describe the batch axes of \
                 {num_operands} operands"
            ))
        };
        let rank = text
            .split(',')
            .find(|axes| *axes != "-")
            .map_or(0, str::len);
        let masks: Box<[_]> = text
            .split(',')
            .map(|axes| {
                if axes == "-" {
                    return Ok(None);
                }
                if axes.len() != rank || !axes.bytes().all(|c| matches!(c, b'0' | b'1')) {
                    return Err(wrong());
                }
                let bits = axes.bytes().enumerate();
                let bits = bits.map(|(axis, c)| u32::from(c == b'1') << (axis & 31));
                Ok(Some(bits.fold(0, |mask, bit| mask | bit)))
            })
            .collect::<Result<_>>()?;
        if rank == 0 || rank > MAX_BATCH_AXES || masks.len() != num_operands {
            return Err(wrong());
        }
        Ok(Batch { rank, masks })
    }

    /// The number of batch axes.
    pub(crate) fn rank(&self) -> usize {
        self.rank
    }

    /// The number of axes in front of an operand.
    pub(crate) fn rank_of(&self, operand: usize) -> usize {
        match self.masks.get(operand) {
            Some(Some(_)) => self.rank,
            _ => 0,
        }
    }

    /// Whether an operand has all batch axes, as in-outs must.
    pub(crate) fn has_all(&self, operand: usize) -> bool {
        let count = |mask: u32| mask.count_ones() as usize;
        self.rank == 0 || self.masks[operand].map(count) == Some(self.rank)
    }

    /// Checks an operand's leading dimensions against the batch sizes.
    pub(crate) fn matches(&self, operand: usize, leading: &[i64], sizes: &[i64]) -> bool {
        match self.masks.get(operand) {
            Some(Some(mask)) => leading
                .iter()
                .zip(sizes)
                .enumerate()
                .all(|(axis, (&dim, &size))| dim == if mask >> axis & 1 == 1 { size } else { 1 }),
            Some(None) => leading.is_empty(),
            None => false,
        }
    }
}

/// The position of a batch element within an array, counted in elements' own sizes:
/// `element` numbers the batch row-major over `sizes`, and axes where the array has
/// size 1 are shared.
pub(crate) fn position(element: usize, sizes: &[i64], leading: &[i64]) -> usize {
    let mut rest = element;
    let mut position = 0;
    let mut stride = 1;
    for (&size, &dim) in sizes.iter().zip(leading).rev() {
        let index = rest % size as usize;
        rest /= size as usize;
        if dim != 1 {
            position += index * stride;
            stride *= dim as usize;
        }
    }
    position
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn batch_axes_of_operands() {
        let batch = Batch::parse("11,01,00", 3).unwrap();
        assert_eq!(batch.rank(), 2);
        assert!(batch.has_all(0) && !batch.has_all(1));
        assert!(batch.matches(0, &[4, 5], &[4, 5]));
        assert!(batch.matches(1, &[1, 5], &[4, 5]));
        assert!(batch.matches(2, &[1, 1], &[4, 5]));
        assert!(!batch.matches(2, &[4, 1], &[4, 5]));
        assert!(!batch.matches(0, &[1, 5], &[4, 5]));
    }

    #[test]
    fn operands_without_axes() {
        let batch = Batch::parse("-,11", 2).unwrap();
        assert_eq!(batch.rank(), 2);
        assert_eq!([batch.rank_of(0), batch.rank_of(1)], [0, 2]);
        assert!(!batch.has_all(0) && batch.has_all(1));
        assert!(batch.matches(0, &[], &[4, 5]));
        assert!(!batch.matches(0, &[4, 5], &[4, 5]));
    }

    #[test]
    fn damaged_descriptions_are_refused() {
        for text in [
            "", "1,0,1", "1", "10,1", "2,0", ",", "1,", "x,y", "-,-", "-1,1", "-", "1,--",
        ] {
            let error = Batch::parse(text, 2).unwrap_err();
            assert!(error.to_string().contains(text), "{error}");
        }
        let deep = "1".repeat(33);
        assert!(Batch::parse(&deep, 1).is_err());
    }

    #[test]
    fn positions_follow_a_naive_loop() {
        let sizes = [2, 3, 2];
        for leading in [
            [2, 3, 2],
            [1, 3, 2],
            [2, 1, 2],
            [2, 3, 1],
            [1, 1, 1],
            [1, 3, 1],
        ] {
            let mut element = 0;
            for i in 0..sizes[0] {
                for j in 0..sizes[1] {
                    for k in 0..sizes[2] {
                        let index = |x, dim| if dim == 1 { 0 } else { x };
                        let expected = (index(i, leading[0]) * leading[1] + index(j, leading[1]))
                            * leading[2]
                            + index(k, leading[2]);
                        assert_eq!(position(element, &sizes, &leading), expected as usize);
                        element += 1;
                    }
                }
            }
        }
    }
}
