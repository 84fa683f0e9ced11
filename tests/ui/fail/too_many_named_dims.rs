#![allow(unused_variables)]
use jax_callable::prelude::*;

#[jax_callable]
fn f(
    #[dims(n0, n1, n2, n3, n4, n5, n6, n7)] x0: cpu::Array<f32, 8>,
    #[dims(n8, n9, n10, n11, n12, n13, n14, n15)] x1: cpu::Array<f32, 8>,
    #[dims(n16, n17, n18, n19, n20, n21, n22, n23)] x2: cpu::Array<f32, 8>,
    #[dims(n24, n25, n26, n27, n28, n29, n30, n31)] x3: cpu::Array<f32, 8>,
    #[dims(n32, n33, n34, n35, n36, n37, n38, n39)] x4: cpu::Array<f32, 8>,
    #[dims(n40, n41, n42, n43, n44, n45, n46, n47)] x5: cpu::Array<f32, 8>,
    #[dims(n48, n49, n50, n51, n52, n53, n54, n55)] x6: cpu::Array<f32, 8>,
    #[dims(n56, n57, n58, n59, n60, n61, n62, n63)] x7: cpu::Array<f32, 8>,
    #[dims(n64)] x8: cpu::Array<f32, 1>,
    #[dims(n0)] y: cpu::ArrayMut<f32, 1>,
) {
}

#[jax_callable]
fn as_many_as_there_can_be(
    #[dims(n0, n1, n2, n3, n4, n5, n6, n7)] x0: cpu::Array<f32, 8>,
    #[dims(n8, n9, n10, n11, n12, n13, n14, n15)] x1: cpu::Array<f32, 8>,
    #[dims(n16, n17, n18, n19, n20, n21, n22, n23)] x2: cpu::Array<f32, 8>,
    #[dims(n24, n25, n26, n27, n28, n29, n30, n31)] x3: cpu::Array<f32, 8>,
    #[dims(n32, n33, n34, n35, n36, n37, n38, n39)] x4: cpu::Array<f32, 8>,
    #[dims(n40, n41, n42, n43, n44, n45, n46, n47)] x5: cpu::Array<f32, 8>,
    #[dims(n48, n49, n50, n51, n52, n53, n54, n55)] x6: cpu::Array<f32, 8>,
    #[dims(n56, n57, n58, n59, n60, n61, n62, n63)] x7: cpu::Array<f32, 8>,
    #[dims(n0)] y: cpu::ArrayMut<f32, 1>,
) {
}

fn main() {}
