/* Traced code: C, because Swift has no -finstrument-functions. */
#pragma once

unsigned example_work(unsigned n);
