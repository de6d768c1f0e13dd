/* Whose memory addresses are of.
 *
 * `ask` is cuPointerGetAttributes; the attributes are CU_POINTER_ATTRIBUTE_MEMORY_TYPE, _DEVICE_ORDINAL,
 * _RANGE_START_ADDR and _RANGE_SIZE. What is no memory of CUDA's gets none of them. A framework's
 * allocator takes much at once, so that several addresses lie in one range.
 */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

enum { MEMORY_TYPE = 2, DEVICE_ORDINAL = 9, RANGE_START = 11, RANGE_SIZE = 12, DEVICE_MEMORY = 2 };

typedef int (*ask_t)(unsigned int, int *, void **, unsigned long long);

/* Memory that was allocated at once. */
typedef struct {
    unsigned long long start;
    size_t size;
} range_t;

static ask_t ask = NULL;

static int device_of(unsigned long long address, range_t *range)
{
    int attributes[4] = {MEMORY_TYPE, DEVICE_ORDINAL, RANGE_START, RANGE_SIZE};
    int type = 0, ordinal = -1;
    void *answers[4] = {&type, &ordinal, &range->start, &range->size};
    if (ask == NULL || ask(4, attributes, answers, address) != 0 || type != DEVICE_MEMORY)
        return -1;
    return ordinal;
}

static PyObject *connect(PyObject *module, PyObject *address)
{
    ask = (ask_t)PyLong_AsVoidPtr(address);
    if (PyErr_Occurred())
        return NULL;
    Py_RETURN_NONE;
}

/* are_on(*addresses); `self` is the device's index. */
static PyObject *are_on(PyObject *self, PyObject *const *addresses, Py_ssize_t count)
{
    long index = PyLong_AsLong(self);
    if (index == -1 && PyErr_Occurred())
        return NULL;
    range_t range = {0, 0};
    for (Py_ssize_t place = 0; place < count; place++) {
        /* As wide as an address, and read in less time than a long long. */
        size_t address = PyLong_AsSize_t(addresses[place]);
        if (address == (size_t)-1 && PyErr_Occurred())
            return NULL;
        if (address - range.start < range.size)
            continue;
        if (device_of(address, &range) != index)
            Py_RETURN_FALSE;
    }
    return PyBool_FromLong(index >= 0);
}

static PyMethodDef are_on_method = {
    "are_on", (PyCFunction)(void (*)(void))are_on, METH_FASTCALL, "Whether all are on a device.",
};

static PyObject *on(PyObject *module, PyObject *index)
{
    return PyCFunction_New(&are_on_method, index);
}

static PyMethodDef methods[] = {
    {"connect", connect, METH_O, "Tells the address of cuPointerGetAttributes."},
    {"on", on, METH_O, "on(index): makes `are_on`, of a device."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "ninetoothed_memory", NULL, -1, methods, NULL, NULL, NULL, NULL,
};

PyMODINIT_FUNC PyInit_ninetoothed_memory(void)
{
    return PyModule_Create(&definition);
}
