/* A fake CUDA driver with two devices of compute capability 9.0. It records
 * launches but runs no kernel, or passes launches to a function of the process
 * that executes PTX (test/ptx). It only has the functions that the runtime
 * asks for. Functions that no test needs return an error. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum {
  SUCCESS = 0,
  INVALID_VALUE = 1,
  INVALID_DEVICE = 101,
  NO_BINARY_FOR_GPU = 209,
  NOT_FOUND = 500
};

struct launch {
  uint64_t stream;
  int32_t ordinal;
  uint32_t grid;
};
static struct launch launches[64];
static int num_launches, next_result, multiprocessors = 132;

struct kernel {
  const char *ptx, *name;
};
typedef int (*executor)(const char *ptx, const char *name, unsigned grid,
                        unsigned threads, void **params);
static executor execute;
/* Contexts are represented by device number + 1; 0 is no context. */
static uintptr_t current, below;

int fake_num_launches(void) { return num_launches; }
struct launch fake_launch(int index) {
  return launches[index];
}
void fake_fail_next_launch(int result) { next_result = result; }
/* Makes `function` execute all launches. Devices then only accept PTX, and
 * have `count` multiprocessors. */
void fake_execute_by(executor function, int count) {
  execute = function;
  multiprocessors = count;
}

static int init(unsigned flags) { return flags; }
static int driver_version(int *version) {
  *version = 13000;
  return SUCCESS;
}
static int error_name(int result, const char **name) {
  *name = "CUDA_ERROR_FAKE";
  return SUCCESS;
}
static int device_count(int *count) {
  *count = 2;
  return SUCCESS;
}
static int device_get(int *device, int ordinal) {
  *device = ordinal;
  return ordinal < 2 ? SUCCESS : INVALID_DEVICE;
}
static int device_attribute(int *value, int attribute, int device) {
  *value = attribute == 75   ? 9
           : attribute == 76 ? 0
           : attribute == 36 ? 2619000 // memory clock in kHz
           : attribute == 37 ? 5120    // memory bus width in bits
                             : multiprocessors;
  return device < 2 ? SUCCESS : INVALID_DEVICE;
}
static int retain(void **context, int device) {
  *context = (void *)(uintptr_t)(device + 1);
  return SUCCESS;
}
static int primary_state(int device, unsigned *flags, int *active) {
  *flags = 0;
  *active = current == (uintptr_t)(device + 1);
  return SUCCESS;
}
static int get_current(void **context) {
  *context = (void *)current;
  return SUCCESS;
}
static int get_device(int *device) {
  *device = (int)current - 1;
  return current ? SUCCESS : 201;
}
static int push(void *context) {
  below = current;
  current = (uintptr_t)context;
  return SUCCESS;
}
static int pop(void **context) {
  *context = (void *)current;
  current = below;
  return SUCCESS;
}
static int exchange_mode(int *mode) {
  return *mode > 2 ? INVALID_VALUE : SUCCESS;
}
static int library_load(void **library, const void *data, int *a, void **b,
                        unsigned c, int *d, void **e, unsigned f) {
  if (!execute) {
    *library = (void *)data;
    return SUCCESS;
  }
  if (memcmp(data, "\177ELF", 4) == 0)
    return NO_BINARY_FOR_GPU;
  *library = strdup(data);
  return SUCCESS;
}
static int library_unload(void *library) { return SUCCESS; }
static int get_kernel(void **kernel, void *library, const char *name) {
  struct kernel *made = malloc(sizeof(*made));
  *made = (struct kernel){library, strdup(name)};
  *kernel = made;
  return SUCCESS;
}
static int get_function(void **function, void *kernel) {
  *function = kernel;
  return SUCCESS;
}
static int kernel_attribute(int *value, int attribute, void *kernel,
                            int device) {
  *value = 1024;
  return SUCCESS;
}
static int launch(const struct kernel *kernel, unsigned grid, unsigned threads,
                  void *stream, void **params) {
  int result = next_result;
  next_result = 0;
  if (result != SUCCESS)
    return result;
  if (execute)
    return execute(kernel->ptx, kernel->name, grid, threads, params);
  if (num_launches == 64)
    abort();
  launches[num_launches++] =
      (struct launch){(uintptr_t)stream, (int32_t)current - 1, grid};
  return SUCCESS;
}
static int launch_kernel(void *function, unsigned gx, unsigned gy, unsigned gz,
                         unsigned bx, unsigned by, unsigned bz, unsigned shared,
                         void *stream, void **params, void **extra) {
  return launch(function, gx, bx, stream, params);
}
struct config {
  unsigned grid[3], block[3], shared;
  void *stream;
};
static int launch_kernel_ex(const struct config *config, void *function,
                            void **params, void **extra) {
  return launch(function, config->grid[0], config->block[0], config->stream,
                params);
}
/* Reports that no stream is captured. Events are complete when recorded. */
static int capture_info(void *stream, int *status, unsigned long long *id) {
  *status = 0;
  return SUCCESS;
}
static int create_event(void **event, unsigned flags) {
  *event = &num_launches;
  return SUCCESS;
}
static int accept(void) { return SUCCESS; }
static int refuse(void) { return INVALID_VALUE; }

static const struct {
  const char *name;
  void *function;
} table[] = {
    {"cuInit", init},
    {"cuDriverGetVersion", driver_version},
    {"cuGetErrorName", error_name},
    {"cuGetErrorString", error_name},
    {"cuDeviceGetCount", device_count},
    {"cuDeviceGet", device_get},
    {"cuDeviceGetAttribute", device_attribute},
    {"cuDevicePrimaryCtxRetain", retain},
    {"cuDevicePrimaryCtxGetState", primary_state},
    {"cuCtxGetCurrent", get_current},
    {"cuCtxGetDevice", get_device},
    {"cuCtxPushCurrent", push},
    {"cuCtxPopCurrent", pop},
    {"cuThreadExchangeStreamCaptureMode", exchange_mode},
    {"cuLibraryLoadData", library_load},
    {"cuLibraryUnload", library_unload},
    {"cuLibraryGetKernel", get_kernel},
    {"cuKernelGetFunction", get_function},
    {"cuKernelGetAttribute", kernel_attribute},
    {"cuLaunchKernel", launch_kernel},
    {"cuLaunchKernelEx", launch_kernel_ex},
    {"cuStreamGetCaptureInfo", capture_info},
    {"cuStreamWaitEvent", accept},
    {"cuEventCreate", create_event},
    {"cuEventRecord", accept},
    {"cuEventDestroy", accept},
    {"cuPointerGetAttributes", refuse},
    /* The runtime works without these functions. */
    {"cuKernelGetParamInfo", NULL},
    {"cuFuncLoad", NULL},
};

int cuGetProcAddress_v2(const char *name, void **function, int version,
                        uint64_t flags, int *status) {
  for (size_t i = 0; i < sizeof(table) / sizeof(*table); ++i)
    if (strcmp(table[i].name, name) == 0) {
      *function = table[i].function;
      return *function ? SUCCESS : NOT_FOUND;
    }
  *function = NULL; /* drivers may lack functions */
  return NOT_FOUND;
}
