//! Numbers that progress can be reported in.

/// A number of any type, as the progress of a call.
pub trait ProgressValue {
    /// Converts the number. Large integers lose precision, which progress does not need.
    fn into_f64(self) -> f64;
}

/// The total of a progress: a number of any type, or `None` if it is not known.
pub trait ProgressTotal {
    /// Converts the total.
    fn into_total(self) -> Option<f64>;
}

macro_rules! numbers {
    ($($number:ty)*) => { $(
        impl ProgressValue for $number {
            #[allow(
                clippy::cast_precision_loss,
                clippy::cast_lossless,
                clippy::unnecessary_cast,
                reason = "one conversion for numbers of every width"
            )]
            fn into_f64(self) -> f64 {
                self as f64
            }
        }

        impl ProgressTotal for $number {
            fn into_total(self) -> Option<f64> {
                Some(self.into_f64())
            }
        }
    )* };
}

numbers!(i8 i16 i32 i64 isize u8 u16 u32 u64 usize f32 f64);

impl ProgressTotal for Option<f64> {
    fn into_total(self) -> Option<f64> {
        self
    }
}
