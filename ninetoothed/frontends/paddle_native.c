/* What a call with PaddlePaddle's tensors asks of Paddle each time, asked without Python in between.

   Built by paddle_native.py. Nothing of Paddle's own is known here but that its functions are
   Python's. What a function below remembers is in the list that is its `self`. */

#define PY_SSIZE_T_CLEAN
#include <Python.h>

/* function(argument); `packed` is (argument,).

   Paddle's functions take a tuple and keywords. Python's own way of calling them makes the tuple
   and costs as much again as a short one takes. */
static PyObject *called(PyObject *function, PyObject *argument, PyObject *packed)
{
    const int takes_tuple = METH_VARARGS | METH_KEYWORDS;
    if (PyCFunction_CheckExact(function) && PyCFunction_GET_FLAGS(function) == takes_tuple) {
        PyCFunction code = PyCFunction_GET_FUNCTION(function);
        PyObject *self = PyCFunction_GET_SELF(function);
        return ((PyCFunctionWithKeywords)(void (*)(void))code)(self, packed, NULL);
    }
    if (Py_TYPE(function) == &PyMethodDescr_Type) {
        PyMethodDef *method = ((PyMethodDescrObject *)function)->d_method;
        PyTypeObject *type = PyDescr_TYPE(function);
        if (method->ml_flags == takes_tuple && PyObject_TypeCheck(argument, type)) {
            PyCFunction code = method->ml_meth;
            PyObject *none = PyTuple_New(0);
            if (none == NULL)
                return NULL;
            PyObject *result = ((PyCFunctionWithKeywords)(void (*)(void))code)(argument, none, NULL);
            Py_DECREF(none);
            return result;
        }
    }
    return PyObject_CallOneArg(function, argument);
}

/* Whether an answer is yes, and gives it back: 1, 0, or -1 where it is an error. */
static int is_yes(PyObject *answer)
{
    if (answer == NULL)
        return -1;
    int yes = PyObject_IsTrue(answer);
    Py_DECREF(answer);
    return yes;
}

/* `checks`: the class, functions that say yes of what is alike, and one that says no. */
static int is_alike(PyObject *checks, PyObject *tensor)
{
    Py_ssize_t last = PyTuple_GET_SIZE(checks) - 1;
    if ((PyObject *)Py_TYPE(tensor) != PyTuple_GET_ITEM(checks, 0))
        return 0;
    PyObject *packed = PyTuple_Pack(1, tensor);
    if (packed == NULL)
        return -1;
    int yes = 1;
    for (Py_ssize_t place = 1; yes == 1 && place < last; place++)
        yes = is_yes(called(PyTuple_GET_ITEM(checks, place), tensor, packed));
    if (yes == 1) {
        int differs = is_yes(called(PyTuple_GET_ITEM(checks, last), tensor, packed));
        yes = differs < 0 ? -1 : !differs;
    }
    Py_DECREF(packed);
    return yes;
}

enum { CHECKS, CAREFUL, ARE_ON_DEVICE };

/* alike(*tensors, *addresses) */
static PyObject *alike(PyObject *self, PyObject *const *given, Py_ssize_t given_count)
{
    PyObject *checks = PyList_GET_ITEM(self, CHECKS);
    Py_ssize_t count = PyTuple_GET_SIZE(checks);
    if (given_count != 2 * count) {
        PyErr_Format(PyExc_TypeError, "%zd tensors and their addresses are compared", count);
        return NULL;
    }
    /* While Paddle is asked another thread may put the careful ones in their place. */
    Py_INCREF(checks);
    int yes = 1;
    for (Py_ssize_t place = 0; yes == 1 && place < count; place++)
        yes = is_alike(PyTuple_GET_ITEM(checks, place), given[place]);
    Py_DECREF(checks);
    if (yes == 1) {
        PyObject *are_on_device = PyList_GET_ITEM(self, ARE_ON_DEVICE);
        yes = is_yes(PyObject_Vectorcall(are_on_device, given + count, count, NULL));
    }
    if (yes >= 0)
        return PyBool_FromLong(yes);
    if (!PyErr_ExceptionMatches(PyExc_Exception))
        return NULL;
    PyErr_Clear();
    /* Paddle told of another dtype by an error, which takes long to make: never again. */
    PyObject *careful = PyList_GET_ITEM(self, CAREFUL);
    Py_INCREF(careful);
    PyList_SetItem(self, CHECKS, careful);
    Py_RETURN_FALSE;
}

static PyMethodDef alike_method = {
    "alike", (PyCFunction)(void (*)(void))alike, METH_FASTCALL, "Whether tensors are alike others.",
};

static PyObject *guard(PyObject *module, PyObject *arguments)
{
    PyObject *checks, *careful, *are_on_device;
    if (!PyArg_ParseTuple(arguments, "O!O!O", &PyTuple_Type, &checks, &PyTuple_Type, &careful,
                          &are_on_device))
        return NULL;
    PyObject *self = Py_BuildValue("[OOO]", checks, careful, are_on_device);
    PyObject *made = self == NULL ? NULL : PyCFunction_New(&alike_method, self);
    Py_XDECREF(self);
    return made;
}

enum { STREAM_OF, WITH_HANDLE, KNOWN };

/* current_stream(index) */
static PyObject *current_stream(PyObject *self, PyObject *index)
{
    PyObject *packed = PyTuple_Pack(1, index);
    if (packed == NULL)
        return NULL;
    PyObject *stream = called(PyList_GET_ITEM(self, STREAM_OF), index, packed);
    Py_DECREF(packed);
    if (stream == NULL)
        return NULL;
    PyObject *known = PyList_GET_ITEM(self, KNOWN);
    Py_INCREF(known);
    if (stream != PyTuple_GET_ITEM(known, 0)) {
        Py_DECREF(known);
        known = PyObject_CallOneArg(PyList_GET_ITEM(self, WITH_HANDLE), stream);
        if (known != NULL) {
            Py_INCREF(known);
            PyList_SetItem(self, KNOWN, known);
        }
    }
    Py_DECREF(stream);
    if (known == NULL)
        return NULL;
    PyObject *handle = PyTuple_GET_ITEM(known, 1);
    Py_INCREF(handle);
    Py_DECREF(known);
    return handle;
}

static PyMethodDef current_stream_method = {
    "current_stream", current_stream, METH_O, "The handle of a device's current stream.",
};

static PyObject *stream(PyObject *module, PyObject *arguments)
{
    PyObject *stream_of, *with_handle;
    if (!PyArg_ParseTuple(arguments, "OO", &stream_of, &with_handle))
        return NULL;
    PyObject *self = Py_BuildValue("[OO(Oi)]", stream_of, with_handle, Py_None, 0);
    PyObject *made = self == NULL ? NULL : PyCFunction_New(&current_stream_method, self);
    Py_XDECREF(self);
    return made;
}

static PyMethodDef methods[] = {
    {"guard", guard, METH_VARARGS, "guard(checks, careful, are_on_device): makes `alike`."},
    {"stream", stream, METH_VARARGS, "stream(stream_of, with_handle): makes `current_stream`."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "ninetoothed_paddle", NULL, -1, methods, NULL, NULL, NULL, NULL,
};

PyMODINIT_FUNC PyInit_ninetoothed_paddle(void)
{
    return PyModule_Create(&definition);
}
