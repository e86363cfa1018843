//! Reading static vectors from files: a table with a row per token, in a safetensors file.
//!
//! Two layouts are read. model2vec writes tensor `embeddings` (tokens × numbers), and may add `weights` (a
//! factor per token) and `mapping` (the row of each token, when similar tokens share one). WordLlama and
//! sentence-transformers write tensor `embedding.weight` alone. Numbers may be of 64, 32 or 16 bits
//! (either half format) or whole numbers of 8 bits. Knows nothing of text.

use safetensors::tensor::TensorView;
use safetensors::{Dtype, SafeTensors};

/// Names that the table may have.
const TABLES: [&str; 2] = ["embeddings", "embedding.weight"];
/// Most numbers in a table: 1 GiB of them in memory.
const MOST: usize = 1 << 28;

/// Rows of numbers by token.
#[derive(Debug, Clone, PartialEq)]
pub struct Table {
    dimension: usize,
    rows: Vec<f32>,
    weights: Option<Vec<f32>>,
    mapping: Option<Vec<u32>>,
}

impl Table {
    /// Reads a file's content, keeping the first `dimension` numbers of each row if so asked.
    ///
    /// # Errors
    /// What is wrong with the content, to be said after the name of its file.
    pub fn read(content: &[u8], dimension: Option<usize>) -> Result<Self, String> {
        let file = SafeTensors::deserialize(content)
            .map_err(|_| "is not a complete safetensors file".to_owned())?;
        let table = TABLES.iter().find_map(|name| file.tensor(name).ok());
        let table = table.ok_or_else(|| format!("holds no tensor {}", TABLES.join(" or ")))?;
        let &[count, width] = table.shape() else {
            return Err("its table has not two dimensions".to_owned());
        };
        if count == 0 || width == 0 || count.saturating_mul(width) > MOST {
            return Err("its table is empty or too large".to_owned());
        }
        let mut rows = numbers(&table)?;
        let dimension = match dimension {
            Some(wanted) if wanted > width => {
                return Err(format!("its vectors have only {width} dimensions"));
            }
            Some(wanted) if wanted < width => {
                rows = rows
                    .chunks_exact(width)
                    .flat_map(|row| &row[..wanted])
                    .copied()
                    .collect();
                wanted
            }
            _ => width,
        };
        let weights = file.tensor("weights").ok();
        let mapping = file.tensor("mapping").ok();
        Ok(Self {
            dimension,
            rows,
            weights: weights.map(|tensor| numbers(&tensor)).transpose()?,
            mapping: mapping.map(|tensor| places(&tensor)).transpose()?,
        })
    }

    /// Numbers of a vector.
    pub fn dimension(&self) -> usize {
        self.dimension
    }

    /// Adds a token's row to a sum; a token that the table does not have adds nothing.
    pub fn add(&self, token: u32, sum: &mut [f32]) {
        let token = token as usize;
        let row = match &self.mapping {
            Some(mapping) => match mapping.get(token) {
                Some(row) => *row as usize,
                None => return,
            },
            None => token,
        };
        let Some(row) = self.rows.chunks_exact(self.dimension).nth(row) else {
            return;
        };
        let weight = match &self.weights {
            Some(weights) => weights.get(token).copied().unwrap_or(1.0),
            None => 1.0,
        };
        for (sum, part) in sum.iter_mut().zip(row) {
            *sum += part * weight;
        }
    }
}

fn numbers(tensor: &TensorView<'_>) -> Result<Vec<f32>, String> {
    let bytes = tensor.data();
    let read = match tensor.dtype() {
        Dtype::F32 => each(bytes, f32::from_le_bytes),
        Dtype::F64 => each(bytes, |part| f64::from_le_bytes(part) as f32),
        Dtype::F16 => each(bytes, |part| half(u16::from_le_bytes(part))),
        Dtype::BF16 => each(bytes, |part: [u8; 2]| {
            f32::from_bits(u32::from(u16::from_le_bytes(part)) << 16)
        }),
        Dtype::I8 => each(bytes, |part| f32::from(i8::from_le_bytes(part))),
        _ => return Err("holds numbers of a kind that is not read".to_owned()),
    };
    if read.iter().all(|part| part.is_finite()) {
        Ok(read)
    } else {
        Err("holds a value that is not a number".to_owned())
    }
}

fn places(tensor: &TensorView<'_>) -> Result<Vec<u32>, String> {
    let bytes = tensor.data();
    let read = match tensor.dtype() {
        Dtype::I64 => each(bytes, |part| u32::try_from(i64::from_le_bytes(part)).ok()),
        Dtype::I32 => each(bytes, |part| u32::try_from(i32::from_le_bytes(part)).ok()),
        Dtype::U32 => each(bytes, |part| Some(u32::from_le_bytes(part))),
        _ => return Err("its mapping is of a kind that is not read".to_owned()),
    };
    let read: Option<Vec<u32>> = read.into_iter().collect();
    read.ok_or_else(|| "its mapping holds a negative row".to_owned())
}

fn each<const N: usize, T>(bytes: &[u8], read: impl Fn([u8; N]) -> T) -> Vec<T> {
    bytes
        .as_chunks::<N>()
        .0
        .iter()
        .map(|part| read(*part))
        .collect()
}

/// IEEE 754 binary16.
fn half(bits: u16) -> f32 {
    let sign = if bits >> 15 == 1 { -1.0 } else { 1.0 };
    let (exponent, fraction) = (i32::from(bits >> 10 & 31), f32::from(bits & 1023));
    match exponent {
        0 => sign * fraction * 2.0_f32.powi(-24),
        31 if fraction == 0.0 => sign * f32::INFINITY,
        31 => f32::NAN,
        _ => sign * (1.0 + fraction / 1024.0) * 2.0_f32.powi(exponent - 15),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(tensors: &[(&str, Dtype, Vec<usize>, Vec<u8>)]) -> Vec<u8> {
        let views = tensors.iter().map(|(name, dtype, shape, bytes)| {
            let view = TensorView::new(*dtype, shape.clone(), bytes).unwrap();
            (*name, view)
        });
        safetensors::serialize(views, None).unwrap()
    }

    fn floats(of: &[f32]) -> Vec<u8> {
        of.iter().flat_map(|part| part.to_le_bytes()).collect()
    }

    fn sum(table: &Table, tokens: &[u32]) -> Vec<f32> {
        let mut sum = vec![0.0; table.dimension()];
        tokens.iter().for_each(|token| table.add(*token, &mut sum));
        sum
    }

    #[test]
    fn a_plain_table_is_read_and_cut() {
        let bytes = floats(&[1.0, 2.0, 3.0, 10.0, 20.0, 30.0]);
        let plain = file(&[("embedding.weight", Dtype::F32, vec![2, 3], bytes)]);
        let table = Table::read(&plain, None).unwrap();
        assert_eq!(sum(&table, &[0, 1, 1, 7]), [21.0, 42.0, 63.0]);
        let table = Table::read(&plain, Some(2)).unwrap();
        assert_eq!(sum(&table, &[1]), [10.0, 20.0]);
        let error = Table::read(&plain, Some(4)).unwrap_err();
        assert_eq!(error, "its vectors have only 3 dimensions");
    }

    #[test]
    fn weights_and_shared_rows_are_followed() {
        let mapping = [1_i64, 0, 1]
            .iter()
            .flat_map(|row| row.to_le_bytes())
            .collect();
        let quantised = file(&[
            ("embeddings", Dtype::I8, vec![2, 2], vec![1, 2, 10, 0xff]),
            ("weights", Dtype::F32, vec![3], floats(&[0.5, 1.0, 2.0])),
            ("mapping", Dtype::I64, vec![3], mapping),
        ]);
        let table = Table::read(&quantised, None).unwrap();
        assert_eq!(sum(&table, &[0]), [5.0, -0.5]);
        assert_eq!(sum(&table, &[1, 2, 3]), [21.0, 0.0]);
    }

    #[test]
    fn both_half_formats_are_exact() {
        let bits = [0x3c00_u16, 0xc000, 0x0001, 0x7bff, 0x0000, 0x3555];
        let read: Vec<f32> = bits.iter().map(|bits| half(*bits)).collect();
        let wanted = [1.0, -2.0, 5.960_464_5e-8, 65504.0, 0.0, 0.333_251_95];
        assert_eq!(read, wanted);
        assert!(half(0x7e00).is_nan() && half(0xfc00) == f32::NEG_INFINITY);
        let bytes = 0x3f80_u16.to_le_bytes().to_vec();
        let brain = file(&[("embeddings", Dtype::BF16, vec![1, 1], bytes)]);
        assert_eq!(sum(&Table::read(&brain, None).unwrap(), &[0]), [1.0]);
    }

    #[test]
    fn what_is_no_table_is_said_so() {
        let bytes = floats(&[f32::NAN]);
        for (content, why) in [
            (b"{}".to_vec(), "is not a complete safetensors file"),
            (
                file(&[("x", Dtype::F32, vec![1, 1], floats(&[1.0]))]),
                "holds no tensor embeddings or embedding.weight",
            ),
            (
                file(&[("embeddings", Dtype::F32, vec![1], floats(&[1.0]))]),
                "its table has not two dimensions",
            ),
            (
                file(&[("embeddings", Dtype::F32, vec![1, 1], bytes)]),
                "holds a value that is not a number",
            ),
        ] {
            assert_eq!(Table::read(&content, None).unwrap_err(), why);
        }
    }
}
