/* A compiled CUDA kernel as Python calls it: numbers are packed and the driver is called, no more.

   One file serves every signature: a `Launcher` is told the types of its kernel's parameters, and
   takes the grid, the stream and an argument for each. A `Launch` is one with the grid and some
   arguments put in already: it takes the stream and the rest, so that between the function that finds
   a call's plan and the driver there is no step in Python. It keeps a tensor descriptor for each tensor
   that is loaded or stored by one; for another address that is put into it.

   Both are called by CPython's vectorcall protocol (PEP 590), without a tuple of the arguments. The
   interpreter's lock is given up while the driver works, which waits where its queue is full. */

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "cuda.h"

#if PY_VERSION_HEX < 0x030B0000
#define PyFloat_Pack2(value, to, is_little) _PyFloat_Pack2(value, (unsigned char *)(to), is_little)
#endif

/* Parameters that Triton adds at the end: the addresses of scratch memory, 0 where there is none. */
enum { ADDED = 2, MOST_PARAMETERS = 4096, HANDED = 2 };

/* The driver's functions, in the order in which `start` is given their addresses. */
static struct {
  CUresult (*launch)(const CUlaunchConfig *, CUfunction, void **, void **);
  CUresult (*error_text)(CUresult, const char **);
  CUresult (*current_device)(CUdevice *);
  CUresult (*current_context)(CUcontext *);
  CUresult (*set_context)(CUcontext);
  CUresult (*replace_address)(CUtensorMap *, void *); /* NULL in a driver that knows no descriptors */
} driver;

static PyObject *error_class;

typedef struct {
  PyObject_VAR_HEAD
  vectorcallfunc call;
  CUfunction function;
  unsigned threads, shared_memory;
  CUlaunchAttribute dependent;
  unsigned attribute_count;
  CUcontext context; /* that it is loaded in */
  CUdevice device;   /* -1: there is no other one */
  PyObject *name;
  char types[]; /* one for each parameter, those that are added included: see `packed` */
} Launcher;

typedef struct {
  PyObject *first;  /* (describe, sizes, strides): `describe(address, sizes, strides)`; NULL once there is a map */
  uint64_t address; /* that the map is of */
  CUtensorMap map;
} Described;

typedef struct {
  int place; /* among the values of a call; -1: the parameter is the same in all */
  union {
    uint64_t value;
    Described *described; /* where it is a descriptor: the value is the address that it is of */
  };
} Parameter;

typedef struct {
  PyObject_VAR_HEAD
  vectorcallfunc call;
  Launcher *launcher;
  unsigned grid;
  int value_count, described_count;
  Parameter parameters[];
} Launch;

/* Where a parameter's bytes are: at `to`, once the argument is packed there. NULL and an error set
   where it does not fit its type. */
static void *packed(char type, PyObject *argument, uint64_t *to) {
  if (type == 'T') {
    if (PyBytes_Check(argument) && PyBytes_GET_SIZE(argument) == sizeof(CUtensorMap))
      return PyBytes_AS_STRING(argument);
    return PyErr_Format(PyExc_TypeError, "the bytes of a tensor descriptor are needed, got %R", argument);
  }
  if (type == 'Q') {
    *to = argument == Py_None ? 0 : PyLong_AsUnsignedLongLong(argument);
    return *to == UINT64_MAX && PyErr_Occurred() ? NULL : to;
  }
  if (strchr("fdey", type) != NULL) {
    double number = PyFloat_AsDouble(argument);
    if (number == -1.0 && PyErr_Occurred())
      return NULL;
    float single = (float)number;
    uint32_t bits;
    memcpy(&bits, &single, sizeof bits);
    uint16_t upper = (uint16_t)(bits >> 16);
    switch (type) {
    case 'd': memcpy(to, &number, sizeof number); return to;
    case 'f': memcpy(to, &single, sizeof single); return to;
    case 'y': memcpy(to, &upper, sizeof upper); return to;
    default: return PyFloat_Pack2(number, (char *)to, 1) < 0 ? NULL : to;
    }
  }
  long long number = PyLong_AsLongLong(argument);
  if (number == -1 && PyErr_Occurred())
    return NULL;
  int fits = type == 'q' || (type == 'i' && number == (int32_t)number) ||
             (type == 'I' && number == (uint32_t)number) ||
             (type == 'h' && number == (int16_t)number) ||
             (type == 'H' && number == (uint16_t)number) ||
             (type == 'b' && number == (int8_t)number) || (type == 'B' && number == (uint8_t)number);
  if (!fits)
    return PyErr_Format(PyExc_OverflowError, "%R does not fit a parameter of type %c", argument, type);
  memcpy(to, &number, sizeof number); /* the lower bytes come first */
  return to;
}

/* Launches on the kernel's device, whichever is the current one, which it is again afterwards. */
static CUresult launched_there(const Launcher *kernel, const CUlaunchConfig *config, void **parameters) {
  CUdevice current;
  if (kernel->device < 0) {
    CUresult status = driver.launch(config, kernel->function, parameters, NULL);
    if (status != CUDA_ERROR_INVALID_CONTEXT)
      return status;
  } else if (driver.current_device(&current) == CUDA_SUCCESS && current == kernel->device)
    return driver.launch(config, kernel->function, parameters, NULL);
  CUcontext before = NULL;
  driver.current_context(&before);
  CUresult status = driver.set_context(kernel->context);
  if (status == CUDA_SUCCESS)
    status = driver.launch(config, kernel->function, parameters, NULL);
  /* A thread that had none has not used a device yet. */
  if (before != NULL)
    driver.set_context(before);
  return status;
}

static void *refused(const Launcher *kernel, CUresult status) {
  const char *text = NULL;
  driver.error_text(status, &text);
  return PyErr_Format(error_class, "The cuda driver failed to launch %R: error %d, %s.", kernel->name,
                      (int)status, text == NULL ? "which it does not know" : text);
}

static int make_first(Described *made, PyObject *address) {
  PyObject *first = Py_NewRef(made->first); /* another thread may be done with it meanwhile */
  PyObject *sizes = PyTuple_GET_ITEM(first, 1), *strides = PyTuple_GET_ITEM(first, 2);
  PyObject *found = PyObject_CallFunctionObjArgs(PyTuple_GET_ITEM(first, 0), address, sizes, strides, NULL);
  void *map = found == NULL ? NULL : packed('T', found, NULL);
  if (map != NULL) {
    memcpy(&made->map, map, sizeof made->map);
    made->address = PyLong_AsUnsignedLongLong(address);
    Py_CLEAR(made->first);
  }
  Py_XDECREF(found);
  Py_DECREF(first);
  return map != NULL;
}

/* The descriptor of an address, at `to`: other threads may ask for another one's meanwhile. */
static void *described(const Launcher *kernel, Described *last, PyObject *argument, CUtensorMap *to) {
  uint64_t address = PyLong_AsUnsignedLongLong(argument);
  if ((address == UINT64_MAX && PyErr_Occurred()) || (last->first != NULL && !make_first(last, argument)))
    return NULL;
  memcpy(to, &last->map, sizeof *to);
  if (address == last->address)
    return to;
  CUresult status = driver.replace_address(to, (void *)(uintptr_t)address);
  if (status != CUDA_SUCCESS)
    return refused(kernel, status);
  memcpy(&last->map, to, sizeof *to);
  last->address = address;
  return to;
}

static PyObject *launched(const Launcher *kernel, unsigned grid, PyObject *stream_number,
                          void **parameters) {
  CUstream stream = (CUstream)PyLong_AsVoidPtr(stream_number);
  if (PyErr_Occurred())
    return NULL;
  if (grid == 0)
    Py_RETURN_NONE;
  CUlaunchConfig config = {
    .gridDimX = grid, .gridDimY = 1, .gridDimZ = 1,
    .blockDimX = kernel->threads, .blockDimY = 1, .blockDimZ = 1,
    .sharedMemBytes = kernel->shared_memory, .hStream = stream,
    .attrs = (CUlaunchAttribute *)&kernel->dependent, .numAttrs = kernel->attribute_count,
  };
  CUresult status;
  Py_BEGIN_ALLOW_THREADS
  status = launched_there(kernel, &config, parameters);
  Py_END_ALLOW_THREADS
  if (status == CUDA_SUCCESS)
    Py_RETURN_NONE;
  return refused(kernel, status);
}

static int is_grid(PyObject *number, unsigned *grid) {
  unsigned long value = PyLong_AsUnsignedLong(number);
  if (value == (unsigned long)-1 && PyErr_Occurred())
    return 0;
  if (value > INT32_MAX) {
    PyErr_Format(PyExc_OverflowError, "%R programs are more than a launch can have", number);
    return 0;
  }
  *grid = (unsigned)value;
  return 1;
}

static int takes(const Launcher *kernel, PyObject *names, Py_ssize_t given, Py_ssize_t least,
                 Py_ssize_t most) {
  if (names == NULL && least <= given && given <= most)
    return 1;
  PyErr_Format(PyExc_TypeError, "a launch of %R takes %zd arguments by position, got %zd",
               kernel->name, least, given + (names == NULL ? 0 : PyTuple_GET_SIZE(names)));
  return 0;
}

static PyObject *call_launcher(PyObject *self, PyObject *const *arguments, size_t flags,
                               PyObject *names) {
  const Launcher *kernel = (const Launcher *)self;
  Py_ssize_t given = PyVectorcall_NARGS(flags) - HANDED, count = Py_SIZE(kernel);
  if (!takes(kernel, names, given + HANDED, count - ADDED + HANDED, count + HANDED))
    return NULL;
  uint64_t values[count];
  void *parameters[count];
  unsigned grid;
  if (!is_grid(arguments[0], &grid))
    return NULL;
  for (Py_ssize_t place = 0; place < count; place++) {
    PyObject *argument = place < given ? arguments[HANDED + place] : Py_None;
    parameters[place] = packed(kernel->types[place], argument, &values[place]);
    if (parameters[place] == NULL)
      return NULL;
  }
  return launched(kernel, grid, arguments[1], parameters);
}

static PyObject *call_launch(PyObject *self, PyObject *const *arguments, size_t flags,
                             PyObject *names) {
  Launch *launch = (Launch *)self;
  const Launcher *kernel = launch->launcher;
  Py_ssize_t given = PyVectorcall_NARGS(flags), count = Py_SIZE(launch);
  if (!takes(kernel, names, given, launch->value_count + 1, launch->value_count + 1))
    return NULL;
  uint64_t values[count];
  void *parameters[count];
  CUtensorMap maps[launch->described_count + 1], *map = maps;
  for (Py_ssize_t place = 0; place < count; place++) {
    Parameter *parameter = &launch->parameters[place];
    PyObject *argument = arguments[1 + parameter->place];
    if (parameter->place < 0)
      parameters[place] = &parameter->value;
    else if (kernel->types[place] == 'T')
      parameters[place] = described(kernel, parameter->described, argument, map++);
    else
      parameters[place] = packed(kernel->types[place], argument, &values[place]);
    if (parameters[place] == NULL)
      return NULL;
  }
  return launched(kernel, launch->grid, arguments[0], parameters);
}

static void free_launch(PyObject *self) {
  Launch *launch = (Launch *)self;
  for (Py_ssize_t place = 0; place < Py_SIZE(launch); place++) {
    Described *described = launch->parameters[place].described;
    if (launch->launcher->types[place] != 'T' || described == NULL)
      continue;
    Py_XDECREF(described->first);
    free(described);
  }
  Py_DECREF(launch->launcher);
  Py_TYPE(self)->tp_free(self);
}

static PyTypeObject launch_type = {
  PyVarObject_HEAD_INIT(NULL, 0).tp_name = "ninetoothed_launcher.Launch",
  .tp_doc = "``launch(stream, *values)``: see `Launcher.bind`.",
  .tp_basicsize = sizeof(Launch),
  .tp_itemsize = sizeof(Parameter),
  .tp_dealloc = free_launch,
  .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL,
  .tp_call = PyVectorcall_Call,
  .tp_vectorcall_offset = offsetof(Launch, call),
};

/* NULL and an error set where it is not (describe, sizes, strides). */
static Described *new_described(PyObject *first) {
  if (!PyTuple_Check(first) || PyTuple_GET_SIZE(first) != 3)
    return (Described *)PyErr_Format(PyExc_TypeError, "(describe, sizes, strides) is needed, got %R", first);
  Described *made = aligned_alloc(_Alignof(Described), sizeof *made);
  if (made == NULL)
    return (Described *)PyErr_NoMemory();
  made->first = Py_NewRef(first);
  return made;
}

static PyObject *bind(PyObject *self, PyObject *arguments) {
  Launcher *kernel = (Launcher *)self;
  PyObject *grid, *places, *constants;
  int value_count;
  if (!PyArg_ParseTuple(arguments, "OiO!O!", &grid, &value_count, &PyTuple_Type, &places,
                        &PyTuple_Type, &constants))
    return NULL;
  Py_ssize_t count = Py_SIZE(kernel), next = 0;
  if (PyTuple_GET_SIZE(places) != count - ADDED)
    return PyErr_Format(PyExc_TypeError, "%R has %zd parameters, got places for %zd", kernel->name,
                        count - ADDED, PyTuple_GET_SIZE(places));
  Launch *made = PyObject_NewVar(Launch, &launch_type, count);
  if (made == NULL)
    return NULL;
  Py_INCREF(kernel);
  made->launcher = kernel;
  made->call = call_launch;
  made->value_count = value_count;
  made->described_count = 0;
  memset(made->parameters, 0, count * sizeof(Parameter));
  if (!is_grid(grid, &made->grid))
    goto failed;
  for (Py_ssize_t number = 0; number < count; number++) {
    Parameter *parameter = &made->parameters[number];
    long place = number < count - ADDED ? PyLong_AsLong(PyTuple_GET_ITEM(places, number)) : -1;
    if (place == -1 && PyErr_Occurred())
      goto failed;
    parameter->place = (int)place;
    int is_described = kernel->types[number] == 'T';
    if (place < -1 || place >= value_count || (place < 0 && is_described)) {
      PyErr_Format(PyExc_ValueError, "no value of a call is at %ld", place);
      goto failed;
    }
    if ((place >= 0 && !is_described) || number >= count - ADDED)
      continue;
    if (next == PyTuple_GET_SIZE(constants)) {
      PyErr_Format(PyExc_ValueError, "parameter %zd of %R has no constant", number, kernel->name);
      goto failed;
    }
    PyObject *constant = PyTuple_GET_ITEM(constants, next++);
    if (is_described) {
      made->described_count++;
      if ((parameter->described = new_described(constant)) == NULL)
        goto failed;
    } else if (packed(kernel->types[number], constant, &parameter->value) == NULL)
      goto failed;
  }
  return (PyObject *)made;
failed:
  Py_DECREF(made);
  return NULL;
}

static PyObject *new_launcher(PyTypeObject *type, PyObject *arguments, PyObject *names) {
  static char *known[] = {"name", "function", "threads", "shared_memory", "is_dependent", "types",
                          "context", "device", NULL};
  unsigned long long function, context;
  unsigned threads, shared_memory;
  int is_dependent, device;
  const char *types;
  Py_ssize_t count;
  PyObject *name;
  if (!PyArg_ParseTupleAndKeywords(arguments, names, "UKIIps#Ki", known, &name, &function, &threads,
                                   &shared_memory, &is_dependent, &types, &count, &context, &device))
    return NULL;
  if (count + ADDED > MOST_PARAMETERS)
    return PyErr_Format(PyExc_ValueError, "%R has %zd parameters, over %d", name, count,
                        MOST_PARAMETERS - ADDED);
  Launcher *made = (Launcher *)type->tp_alloc(type, count + ADDED);
  if (made == NULL)
    return NULL;
  made->call = call_launcher;
  made->function = (CUfunction)(uintptr_t)function;
  made->threads = threads;
  made->shared_memory = shared_memory;
  made->dependent.id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION;
  made->dependent.value.programmaticStreamSerializationAllowed = 1;
  made->attribute_count = is_dependent ? 1 : 0;
  made->context = (CUcontext)(uintptr_t)context;
  made->device = device;
  Py_INCREF(name);
  made->name = name;
  memcpy(made->types, types, count);
  memset(made->types + count, 'Q', ADDED);
  return (PyObject *)made;
}

static void free_launcher(PyObject *self) {
  Py_XDECREF(((Launcher *)self)->name);
  Py_TYPE(self)->tp_free(self);
}

static PyMethodDef launcher_methods[] = {
  {"bind", bind, METH_VARARGS,
   "bind(grid, value_count, places, constants): the `Launch` of so many values. `places` says for each "
   "parameter which of them it is; -1: the next of the constants. That of a tensor descriptor is the address\n"
   "that it is of, and the next constant ``(describe, sizes, strides)``: ``describe(address, sizes, strides)``\n"
   "gives its bytes."},
  {NULL},
};

static PyTypeObject launcher_type = {
  PyVarObject_HEAD_INIT(NULL, 0).tp_name = "ninetoothed_launcher.Launcher",
  .tp_doc = "``launcher(grid, stream, *arguments)``; two addresses of scratch memory may follow.",
  .tp_basicsize = offsetof(Launcher, types),
  .tp_itemsize = sizeof(char),
  .tp_new = new_launcher,
  .tp_dealloc = free_launcher,
  .tp_methods = launcher_methods,
  .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL,
  .tp_call = PyVectorcall_Call,
  .tp_vectorcall_offset = offsetof(Launcher, call),
};

/* Sets what every launch uses: the driver's functions, and what is raised where one fails. */
static PyObject *start(PyObject *module, PyObject *arguments) {
  unsigned long long found[sizeof driver / sizeof(void *)];
  PyObject *error;
  if (!PyArg_ParseTuple(arguments, "(KKKKKK)O", &found[0], &found[1], &found[2], &found[3], &found[4],
                        &found[5], &error))
    return NULL;
  memcpy(&driver, found, sizeof driver);
  Py_INCREF(error);
  Py_XSETREF(error_class, error);
  Py_RETURN_NONE;
}

static PyMethodDef functions[] = {
  {"start", start, METH_VARARGS, "start(addresses, error_class), once, before anything."},
  {NULL},
};

static PyModuleDef module_definition = {
  PyModuleDef_HEAD_INIT, .m_name = "ninetoothed_launcher", .m_size = -1, .m_methods = functions,
};

PyMODINIT_FUNC PyInit_ninetoothed_launcher(void) {
  if (PyType_Ready(&launcher_type) < 0 || PyType_Ready(&launch_type) < 0)
    return NULL;
  PyObject *module = PyModule_Create(&module_definition);
  if (module == NULL)
    return NULL;
  Py_INCREF(&launcher_type);
  if (PyModule_AddObject(module, "Launcher", (PyObject *)&launcher_type) < 0) {
    Py_DECREF(&launcher_type);
    Py_DECREF(module);
    return NULL;
  }
  return module;
}
