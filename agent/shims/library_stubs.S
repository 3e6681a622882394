/* What the imports of library functions lead to (library_calls.h): stub n is at collect_library_stubs +
 * 16 * n. The functions have six arguments at most, all in general registers, and one result in one. A
 * call that is not recorded passes on as it came; the others have this frame below them, which
 * unwinders can read. A LibraryCall of library_calls.cc is at its end.
 */
#if defined(__x86_64__)

	.text
	.p2align 4
	.globl collect_library_stubs
	.hidden collect_library_stubs
	.type collect_library_stubs, @function
collect_library_stubs:
	.set index, 0
	.rept COLLECT_LIBRARY_FUNCTIONS
	.p2align 4
	endbr64
	movl $index, %r11d
	jmp through
	.set index, index + 1
	.endr

	.p2align 4
	.type through, @function
through:
	.cfi_startproc
	pushq %rbp
	.cfi_def_cfa_offset 16
	.cfi_offset %rbp, -16
	movq %rsp, %rbp
	.cfi_def_cfa_register %rbp
	subq $96, %rsp
	movq %rdi, (%rsp)
	movq %rsi, 8(%rsp)
	movq %rdx, 16(%rsp)
	movq %rcx, 24(%rsp)
	movq %r8, 32(%rsp)
	movq %r9, 40(%rsp)
	movq %r11, 48(%rsp)
	movl %r11d, %edi
	movq %rsp, %rsi
	call collect_library_enter
	cmpl $1, %edx
	ja 2f
	movq %rax, %r11
	movq (%rsp), %rdi
	movq 8(%rsp), %rsi
	movq 16(%rsp), %rdx
	movq 24(%rsp), %rcx
	movq 32(%rsp), %r8
	movq 40(%rsp), %r9
	movl $0, %eax
	jb 1f
	call *%r11
	movq %rax, 56(%rsp)
	movl 48(%rsp), %edi
	movq %rsp, %rsi
	call collect_library_leave
	movq 56(%rsp), %rax
2:	.cfi_remember_state
	leave
	.cfi_def_cfa %rsp, 8
	ret
1:	.cfi_restore_state
	leave
	.cfi_def_cfa %rsp, 8
	jmp *%r11
	.cfi_endproc

#elif defined(__aarch64__)

	.text
	.p2align 4
	.globl collect_library_stubs
	.hidden collect_library_stubs
	.type collect_library_stubs, %function
collect_library_stubs:
	.set index, 0
	.rept COLLECT_LIBRARY_FUNCTIONS
	.p2align 4
	hint #34
	mov w16, #index
	b through
	.set index, index + 1
	.endr

	.p2align 4
	.type through, %function
through:
	.cfi_startproc
	stp x29, x30, [sp, #-112]!
	.cfi_def_cfa_offset 112
	.cfi_offset 29, -112
	.cfi_offset 30, -104
	mov x29, sp
	stp x0, x1, [sp, #16]
	stp x2, x3, [sp, #32]
	stp x4, x5, [sp, #48]
	str x16, [sp, #64]
	mov w0, w16
	add x1, sp, #16
	bl collect_library_enter
	cmp w1, #1
	b.hi 2f
	mov x16, x0
	ldp x0, x1, [sp, #16]
	ldp x2, x3, [sp, #32]
	ldp x4, x5, [sp, #48]
	b.lo 1f
	blr x16
	str x0, [sp, #72]
	ldr x0, [sp, #64]
	add x1, sp, #16
	bl collect_library_leave
	ldr x0, [sp, #72]
2:	.cfi_remember_state
	ldp x29, x30, [sp], #112
	.cfi_def_cfa_offset 0
	.cfi_restore 29
	.cfi_restore 30
	ret
1:	.cfi_restore_state
	ldp x29, x30, [sp], #112
	.cfi_def_cfa_offset 0
	.cfi_restore 29
	.cfi_restore 30
	br x16
	.cfi_endproc

#endif

	.section .note.GNU-stack, "", %progbits
