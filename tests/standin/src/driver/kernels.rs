//! The kernels that a module can have. A module's image is the line `// stand-in`, then their names.

use super::memory::Memory;

type Outcome<T = ()> = Result<T, String>;

pub(crate) struct Kernel {
    pub(crate) name: &'static str,
    /// The sizes of its parameters.
    pub(crate) params: &'static [usize],
    pub(crate) run: fn(&Launch<'_>) -> Outcome,
}

/// What a kernel sees.
pub(crate) struct Launch<'a> {
    pub(crate) memory: &'a Memory,
    pub(crate) device: usize,
    pub(crate) params: &'a [Box<[u8]>],
}

/// What the first line of an image is.
pub(crate) const MAGIC: &str = "// stand-in";

/// The kernel of a name.
pub(crate) fn find(name: &str) -> Option<&'static Kernel> {
    KERNELS.iter().find(|kernel| kernel.name == name)
}

static KERNELS: &[Kernel] = &[
    // y <- a x + y
    Kernel {
        name: "axpy",
        params: &[4, 4, 8, 8],
        run: |launch| {
            let (n, a) = (launch.number(0)?, launch.value::<f32>(1)?);
            let (x, y) = (launch.array(2, n)?, launch.array(3, n)?);
            (0..n).for_each(|i| y.set(i, a * x.get(i) + y.get(i)));
            Ok(())
        },
    },
    // z <- x + y
    Kernel {
        name: "add",
        params: &[4, 8, 8, 8],
        run: |launch| {
            let n = launch.number(0)?;
            let [x, y, z] = [1, 2, 3].map(|i| launch.array(i, n));
            let (x, y, z) = (x?, y?, z?);
            (0..n).for_each(|i| z.set(i, x.get(i) + y.get(i)));
            Ok(())
        },
    },
    // z <- x + y, with y so many bytes behind x
    Kernel {
        name: "add_at",
        params: &[4, 8, 8, 8],
        run: |launch| {
            let n = launch.number(0)?;
            let (x, distance) = (launch.value::<u64>(1)?, launch.value::<u64>(2)?);
            let y = launch.at(x.wrapping_add(distance), n)?;
            let (x, z) = (launch.at(x, n)?, launch.array(3, n)?);
            (0..n).for_each(|i| z.set(i, x.get(i) + y.get(i)));
            Ok(())
        },
    },
    // z <- x + y, and an address that is not used
    Kernel {
        name: "add_unused",
        params: &[4, 8, 8, 8, 8],
        run: |launch| {
            let n = launch.number(0)?;
            let (x, y, z) = (
                launch.array(1, n)?,
                launch.array(2, n)?,
                launch.array(3, n)?,
            );
            (0..n).for_each(|i| z.set(i, x.get(i) + y.get(i)));
            Ok(())
        },
    },
    // y <- scale x, all of it in one struct: x, n, scale, y
    Kernel {
        name: "scale_struct",
        params: &[24],
        run: |launch| {
            let [x, n_scale, y] = launch.value::<[u64; 3]>(0)?;
            let (n, scale) = (
                n_scale as u32 as usize,
                f32::from_bits((n_scale >> 32) as u32),
            );
            let (x, y) = (launch.at(x, n)?, launch.at(y, n)?);
            (0..n).for_each(|i| y.set(i, scale * x.get(i)));
            Ok(())
        },
    },
];

/// An array of a kernel's.
struct Floats(*mut f32);

impl Floats {
    fn get(&self, i: usize) -> f32 {
        // SAFETY: `Launch::at` has checked the range, and kernels stay in it.
        unsafe { self.0.add(i).read_unaligned() }
    }

    fn set(&self, i: usize, value: f32) {
        // SAFETY: as for `get`.
        unsafe { self.0.add(i).write_unaligned(value) };
    }
}

impl Launch<'_> {
    fn value<T: Copy>(&self, index: usize) -> Outcome<T> {
        let bytes = &self.params[index];
        if bytes.len() != size_of::<T>() {
            return Err(format!("parameter {index} has {} bytes", bytes.len()));
        }
        // SAFETY: it has the size, and numbers may be any bytes.
        Ok(unsafe { bytes.as_ptr().cast::<T>().read_unaligned() })
    }

    fn number(&self, index: usize) -> Outcome<usize> {
        Ok(self.value::<u32>(index)? as usize)
    }

    fn array(&self, index: usize, n: usize) -> Outcome<Floats> {
        self.at(self.value(index)?, n)
    }

    fn at(&self, address: u64, n: usize) -> Outcome<Floats> {
        let pointer = self.memory.at(self.device, address, n * size_of::<f32>());
        pointer.map(|pointer| Floats(pointer.cast()))
    }
}
