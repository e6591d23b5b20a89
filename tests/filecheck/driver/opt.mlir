// RUN: stepwell-opt %s | filecheck %s

// CHECK: builtin.module {
builtin.module {
}
