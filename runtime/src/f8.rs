//! 8-bit floating point numbers, under XLA's names: what `ml_dtypes` calls `float8_e4m3fn` and so on.
//!
//! They are elements of arrays, and values that kernels take. They convert from and to `f32`,
//! in which all arithmetic is done:
//!
//! ```
//! use jax_callable::f8::F8E4M3FN;
//!
//! let x = F8E4M3FN::from_f32(3.3);
//! assert_eq!(x.to_f32(), 3.25);
//! assert_eq!(F8E4M3FN::from_bits(x.to_bits()), x);
//! ```
//!
//! A name tells the bits: `E4M3` has 4 of exponent and 3 of mantissa. `FN` has no infinities;
//! `FNUZ` has no negative zero either, whose code is the only NaN; `B11` has an exponent bias
//! of 11; `E8M0FNU` has no sign and no zero.

use std::cmp::Ordering;
use std::fmt;

/// A layout of a sign, an exponent and a mantissa in 8 bits.
struct Format {
    /// Bits.
    mantissa: u32,
    bias: i32,
    specials: Specials,
}

/// What the last codes mean.
#[derive(Clone, Copy)]
enum Specials {
    /// The last exponent is of infinities and NaNs.
    Ieee,
    /// The last code is NaN.
    Fn,
    /// None; NaN is what would be -0.
    Fnuz,
}

const SIGN: u8 = 0x80;

// The parts of an `f32`.
const F32_MANTISSA: u32 = 23;
const F32_HIDDEN: u32 = 1 << F32_MANTISSA;
const F32_BIAS: i32 = 127;
const F32_INFINITY: u32 = f32::INFINITY.to_bits();

/// With bits only: where these run, the processor may take subnormal numbers for zero.
impl Format {
    const fn new(mantissa: u32, bias: i32, specials: Specials) -> Format {
        Format {
            mantissa,
            bias,
            specials,
        }
    }

    /// The code of infinity; without infinities, the one after the largest number.
    const fn infinity(&self) -> u8 {
        match self.specials {
            Specials::Ieee => 0x7f >> self.mantissa << self.mantissa,
            Specials::Fn => 0x7f,
            Specials::Fnuz => 0x80,
        }
    }

    /// The code of a NaN, without a sign.
    const fn nan(&self) -> u8 {
        match self.specials {
            Specials::Ieee => self.infinity() | 1 << (self.mantissa - 1),
            Specials::Fn | Specials::Fnuz => self.infinity(),
        }
    }

    const fn is_nan(&self, bits: u8) -> bool {
        match self.specials {
            Specials::Ieee => bits & !SIGN > self.infinity(),
            Specials::Fn => bits & !SIGN == self.nan(),
            Specials::Fnuz => bits == self.nan(),
        }
    }

    const fn decode(&self, bits: u8) -> f32 {
        let sign = ((bits & SIGN) as u32) << 24;
        let code = (bits & !SIGN) as u32;
        if self.is_nan(bits) {
            return f32::from_bits(f32::NAN.to_bits() | sign);
        }
        if matches!(self.specials, Specials::Ieee) && code == self.infinity() as u32 {
            return f32::from_bits(F32_INFINITY | sign);
        }
        if code == 0 {
            return f32::from_bits(sign);
        }
        let mut exponent = (code >> self.mantissa) as i32;
        let mut mantissa = code << (F32_MANTISSA - self.mantissa) & (F32_HIDDEN - 1);
        if exponent == 0 {
            // Subnormal here, and normal as an `f32`.
            let shift = mantissa.leading_zeros() - (u32::BITS - 1 - F32_MANTISSA);
            exponent = 1 - shift as i32;
            mantissa = mantissa << shift & (F32_HIDDEN - 1);
        }
        let exponent = (exponent - self.bias + F32_BIAS) as u32;
        f32::from_bits(sign | exponent << F32_MANTISSA | mantissa)
    }

    const fn encode(&self, value: f32) -> u8 {
        let bits = value.to_bits();
        let magnitude = bits & !(1 << 31);
        let code = match self.round(magnitude) {
            _ if magnitude > F32_INFINITY => self.nan(),
            code if code > self.infinity() => self.infinity(),
            code => code,
        };
        match self.specials {
            Specials::Fnuz if code == 0 || code == self.nan() => code,
            _ => code | (bits >> 24) as u8 & SIGN,
        }
    }

    /// The code nearest to the magnitude of an `f32`, with ties to even; whatever is above the
    /// largest number gives some code above it.
    const fn round(&self, magnitude: u32) -> u8 {
        let exponent = (magnitude >> F32_MANTISSA) as i32 - F32_BIAS + self.bias;
        let mut shift = F32_MANTISSA - self.mantissa;
        let exact = if exponent >= 1 {
            (exponent as u32) << F32_MANTISSA | magnitude & (F32_HIDDEN - 1)
        } else {
            // One bit less for each step below the smallest exponent. A subnormal `f32` is far
            // below half of the smallest number.
            shift += (1 - exponent) as u32;
            magnitude & (F32_HIDDEN - 1) | F32_HIDDEN
        };
        if shift > F32_MANTISSA + 1 {
            return 0;
        }
        // A carry goes into the exponent, which is right.
        let is_odd = exact >> shift & 1;
        let code = (exact + (1 << (shift - 1)) - 1 + is_odd) >> shift;
        if code > u8::MAX as u32 {
            return u8::MAX;
        }
        code as u8
    }
}

/// The code of a number without sign, zero and mantissa; 0xff is NaN.
const fn encode_exponent(value: f32) -> u8 {
    let bits = value.to_bits();
    if bits == 0 || bits >= F32_INFINITY {
        // Zero, infinite, NaN, or with a sign.
        return 0xff;
    }
    // Half-way goes up, as in `ml_dtypes`. The first step is where an `f32` is subnormal.
    let half = F32_HIDDEN / 2;
    if bits < F32_HIDDEN {
        return (bits >= half + half / 2) as u8;
    }
    ((bits + half) >> F32_MANTISSA) as u8
}

const fn decode_exponent(bits: u8) -> f32 {
    match bits {
        0 => f32::from_bits(F32_HIDDEN / 2),
        0xff => f32::NAN,
        bits => f32::from_bits((bits as u32) << F32_MANTISSA),
    }
}

macro_rules! types {
    ($(
        $(#[$doc:meta])*
        $name:ident, |$bits:ident| $decode:expr, |$value:ident| $encode:expr;
    )*) => {$(
        $(#[$doc])*
        ///
        /// Compares and prints as the `f32` of its value: NaN differs from itself.
        #[derive(Clone, Copy)]
        #[repr(transparent)]
        pub struct $name(u8);

        impl $name {
            /// The number of a code.
            pub const fn from_bits(bits: u8) -> Self {
                $name(bits)
            }

            /// Its code.
            pub const fn to_bits(self) -> u8 {
                self.0
            }

            /// The nearest number, with ties to even. What is too large, or has no code for
            /// another reason, becomes infinite, or NaN where there are no infinities.
            pub const fn from_f32($value: f32) -> Self {
                $name($encode)
            }

            /// Its value, exactly.
            pub const fn to_f32(self) -> f32 {
                let $bits = self.0;
                $decode
            }

            /// Whether it is not a number.
            pub const fn is_nan(self) -> bool {
                self.to_f32().is_nan()
            }
        }

        impl From<$name> for f32 {
            fn from(value: $name) -> f32 {
                value.to_f32()
            }
        }

        impl PartialEq for $name {
            fn eq(&self, other: &$name) -> bool {
                self.to_f32() == other.to_f32()
            }
        }

        impl PartialOrd for $name {
            fn partial_cmp(&self, other: &$name) -> Option<Ordering> {
                self.to_f32().partial_cmp(&other.to_f32())
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Debug::fmt(&self.to_f32(), f)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(&self.to_f32(), f)
            }
        }
    )*};
}

macro_rules! signed {
    ($($(#[$doc:meta])* $name:ident = $mantissa:literal, $bias:literal, $specials:ident;)*) => {
        types! {$(
            $(#[$doc])*
            $name,
            |bits| Format::new($mantissa, $bias, Specials::$specials).decode(bits),
            |value| Format::new($mantissa, $bias, Specials::$specials).encode(value);
        )*}
        $(
            /// 0.
            impl Default for $name {
                fn default() -> $name {
                    $name(0)
                }
            }
        )*
    };
}

signed! {
    /// `float8_e5m2`: up to 57344, with infinities.
    F8E5M2 = 2, 15, Ieee;
    /// `float8_e5m2fnuz`: up to 57344, without infinities and -0.
    F8E5M2FNUZ = 2, 16, Fnuz;
    /// `float8_e4m3`: up to 240, with infinities.
    F8E4M3 = 3, 7, Ieee;
    /// `float8_e4m3fn`: up to 448, without infinities.
    F8E4M3FN = 3, 7, Fn;
    /// `float8_e4m3fnuz`: up to 240, without infinities and -0.
    F8E4M3FNUZ = 3, 8, Fnuz;
    /// `float8_e4m3b11fnuz`: up to 30, without infinities and -0.
    F8E4M3B11FNUZ = 3, 11, Fnuz;
    /// `float8_e3m4`: up to 15.5, with infinities.
    F8E3M4 = 4, 3, Ieee;
}

types! {
    /// `float8_e8m0fnu`: the powers of two from 2^-127 to 2^127, for scales. Ties go to the
    /// larger one, and what is positive and too small to the smallest.
    F8E8M0FNU, |bits| decode_exponent(bits), |value| encode_exponent(value);
}

#[cfg(test)]
mod tests {
    use super::*;

    macro_rules! for_all {
        (|$name:ident| $body:block) => {
            for_all! { $name $body F8E5M2 F8E5M2FNUZ F8E4M3 F8E4M3FN F8E4M3FNUZ F8E4M3B11FNUZ F8E3M4 F8E8M0FNU }
        };
        ($name:ident $body:block $($ty:ident)*) => {$(
            {
                type $name = $ty;
                $body
            }
        )*};
    }

    #[test]
    fn every_code_survives_an_f32() {
        for_all!(|T| {
            for bits in 0..=255 {
                let value = T::from_bits(bits);
                let back = T::from_f32(value.to_f32());
                assert!(
                    back.to_bits() == bits || back.is_nan() && value.is_nan(),
                    "{bits:#x}"
                );
            }
        });
    }

    #[test]
    fn what_lies_between_goes_to_the_nearest() {
        for_all!(|T| {
            let has_mantissa = T::from_f32(3.0).to_f32() == 3.0;
            let values = (0..=255).map(|bits| (f64::from(T::from_bits(bits).to_f32()), bits));
            let mut values: Vec<(f64, u8)> =
                values.filter(|(value, _)| value.is_finite()).collect();
            values.sort_by(|a, b| a.0.total_cmp(&b.0));
            for pair in values.windows(2).filter(|pair| pair[0].0 < pair[1].0) {
                let [(low, low_bits), (high, high_bits)] = [pair[0], pair[1]];
                let middle = f64::midpoint(low, high);
                let step = (high - low) / 64.0;
                let codes = [middle - step, middle, middle + step]
                    .map(|value| T::from_f32(value as f32).to_bits());
                let is_even = has_mantissa && low_bits % 2 == 0;
                let tie = if is_even { low_bits } else { high_bits };
                assert_eq!(codes, [low_bits, tie, high_bits], "{low} {high}");
            }
        });
    }

    #[test]
    fn the_largest_and_what_is_larger() {
        let numbers = [f32::INFINITY, f32::NEG_INFINITY, 1e9, -1e9, -1e-30];
        for_all!(|T| {
            let nan = T::from_f32(f32::NAN);
            assert!(nan.is_nan() && nan != nan && T::from_f32(-f32::NAN).is_nan());
        });
        let codes = |encode: fn(f32) -> u8| numbers.map(encode);
        assert_eq!(F8E5M2::from_bits(0x7b).to_f32(), 57344.0);
        assert_eq!(
            codes(|x| F8E5M2::from_f32(x).to_bits()),
            [0x7c, 0xfc, 0x7c, 0xfc, 0x80]
        );
        assert_eq!(F8E4M3::from_bits(0x77).to_f32(), 240.0);
        assert_eq!(
            codes(|x| F8E4M3::from_f32(x).to_bits()),
            [0x78, 0xf8, 0x78, 0xf8, 0x80]
        );
        assert_eq!(F8E3M4::from_bits(0x6f).to_f32(), 15.5);
        assert_eq!(
            codes(|x| F8E3M4::from_f32(x).to_bits()),
            [0x70, 0xf0, 0x70, 0xf0, 0x80]
        );
        assert_eq!(F8E4M3FN::from_bits(0x7e).to_f32(), 448.0);
        assert_eq!(
            codes(|x| F8E4M3FN::from_f32(x).to_bits()),
            [0x7f, 0xff, 0x7f, 0xff, 0x80]
        );
        assert_eq!(F8E5M2FNUZ::from_bits(0x7f).to_f32(), 57344.0);
        assert_eq!(
            codes(|x| F8E5M2FNUZ::from_f32(x).to_bits()),
            [0x80, 0x80, 0x80, 0x80, 0]
        );
        assert_eq!(F8E4M3FNUZ::from_bits(0x7f).to_f32(), 240.0);
        assert_eq!(
            codes(|x| F8E4M3FNUZ::from_f32(x).to_bits()),
            [0x80, 0x80, 0x80, 0x80, 0]
        );
        assert_eq!(F8E4M3B11FNUZ::from_bits(0x7f).to_f32(), 30.0);
        assert_eq!(
            codes(|x| F8E4M3B11FNUZ::from_f32(x).to_bits()),
            [0x80, 0x80, 0x80, 0x80, 0]
        );
        assert_eq!(F8E8M0FNU::from_bits(0xfe).to_f32(), 2.0_f32.powi(127));
        assert_eq!(
            codes(|x| F8E8M0FNU::from_f32(x).to_bits()),
            [0xff, 0xff, 0x9d, 0xff, 0xff]
        );
        assert_eq!(F8E8M0FNU::from_f32(0.0).to_bits(), 0xff);
    }

    #[test]
    fn they_compare_and_print_as_numbers() {
        let [half, two] = [0.5, 2.0].map(F8E4M3FN::from_f32);
        assert!(half < two && half != two);
        assert_eq!(F8E4M3FN::from_bits(0x80), F8E4M3FN::default());
        assert_eq!(format!("{half} {two:?}"), "0.5 2.0");
        assert_eq!(f32::from(two), 2.0);
    }
}
