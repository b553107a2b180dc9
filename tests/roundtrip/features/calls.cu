// targets: >=75
// Calls: functions kept out of line, struct arguments and results, recursion, function pointers, virtual functions,
// variable arguments through printf, device-side allocation, assertions, traps, alloca.
#include <cassert>
#include <cstdio>

struct Triple {
    int a;
    double b;
    char c[5];
};

__device__ __noinline__ int add_one(int x) { return x + 1; }
__device__ __noinline__ float mix(float a, double b, char c, short d, bool e) { return e ? a + (float)b : (float)(c + d); }
__device__ __noinline__ Triple make_triple(int x) { return Triple{x, x * 0.5, {1, 2, 3, (char)x, 5}}; }
__device__ __noinline__ int use_triple(Triple t, const Triple *u) { return t.a + (int)u->b + t.c[3]; }
__device__ __noinline__ void store_nothing(int *p) { *p = 3; }
__device__ __noinline__ float4 vector_result(float x) { return make_float4(x, x + 1, x + 2, x + 3); }

__device__ __noinline__ int fibonacci(int n) { return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2); }
__device__ int is_odd(unsigned n);
__device__ __noinline__ int is_even(unsigned n) { return n == 0 ? 1 : is_odd(n - 1); }
__device__ __noinline__ int is_odd(unsigned n) { return n == 0 ? 0 : is_even(n - 1); }

extern "C" __global__ void direct_calls(int *out, float *f, int n) {
    out[0] = add_one(n);
    f[0] = mix(f[1], f[2], (char)n, (short)n, n > 3);
    const Triple t = make_triple(n);
    out[1] = use_triple(t, &t);
    store_nothing(out + 2);
    const float4 v = vector_result(f[3]);
    f[4] = v.x + v.w;
    out[3] = fibonacci(n);
    out[4] = is_even(n);
}

typedef int (*Operation)(int, int);
__device__ int sum_of(int a, int b) { return a + b; }
__device__ int difference_of(int a, int b) { return a - b; }
__device__ int product_of(int a, int b) { return a * b; }
__device__ Operation operations[3] = {sum_of, difference_of, product_of};
__constant__ Operation constant_operation = product_of;

extern "C" __global__ void indirect_calls(int *out, int which) {
    out[0] = operations[which](out[1], out[2]);
    Operation chosen = which > 1 ? sum_of : difference_of;
    out[3] = chosen(which, 7);
    out[4] = constant_operation(which, 2);
}

class Shape {
   public:
    __device__ virtual ~Shape() {}
    __device__ virtual float area() const = 0;
    __device__ virtual void grow(float by) = 0;
};
class Square : public Shape {
   public:
    __device__ explicit Square(float side) : side_(side) {}
    __device__ float area() const override { return side_ * side_; }
    __device__ void grow(float by) override { side_ += by; }

   private:
    float side_;
};
class Circle : public Shape {
   public:
    __device__ explicit Circle(float radius) : radius_(radius) {}
    __device__ float area() const override { return 3.14159f * radius_ * radius_; }
    __device__ void grow(float by) override { radius_ *= by; }

   private:
    float radius_;
};

extern "C" __global__ void virtual_calls(float *out, int n) {
    Shape *shape = n > 2 ? static_cast<Shape *>(new Square(2.0f)) : static_cast<Shape *>(new Circle(1.0f));
    shape->grow(out[1]);
    out[0] = shape->area();
    delete shape;
}

extern "C" __global__ void runtime_calls(int *out, int n) {
    printf("thread %d of %s: %f %lld %c%%\n", threadIdx.x, "block", n * 0.25, (long long)n, 'x');
    printf("no arguments\n");
    int *memory = static_cast<int *>(malloc(n * sizeof(int)));
    if (memory == nullptr) {
        __trap();
    }
    memory[n / 2] = n;
    out[0] = memory[n / 3];
    free(memory);
    assert(n > 0 && "n must be positive");
    int *on_stack = static_cast<int *>(alloca(n * sizeof(int)));
    on_stack[n - 1] = out[1];
    out[2] = on_stack[n / 2];
    __brkpt();
    memcpy(out + 16, out + 64, 40);
    memset(out + 32, 0, 36);
    if (n == 99) {
        asm volatile("exit;");
    }
    __builtin_assume(n < 1000);
    if (n > 2000) {
        __builtin_unreachable();
    }
}

template <typename F>
__device__ __noinline__ int apply(F f, int x) {
    return f(x) + f(x + 1);
}
extern "C" __global__ void lambdas(int *out, int n) {
    int captured = out[1];
    out[0] = apply([captured, n](int x) { return x * captured + n; }, out[2]);
}
